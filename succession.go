// Package succession opens coordinators, and has the errors of the whole library: it is what an
// application imports beside elect, or one of the recipes, and a driver.
//
//	import (
//		"github.com/succession-dev/succession"
//		"github.com/succession-dev/succession/elect"
//		_ "github.com/succession-dev/succession/etcd" // or zookeeper, consul, local
//	)
//
//	b, err := succession.Open("etcd://h1:2379,h2:2379/app")
//	...
//	err = elect.New(b, "reports", nil).Run(ctx, func(ctx context.Context, t *elect.Term) error {
//		return sendReports(ctx, t.Token()) // ctx ends when this process must not lead any more
//	})
//
// # The other packages
//
//   - elect: elections, terms, and what observers see. Package operate below it is for operators,
//     package trace for measurements.
//   - recipes/lock, queue, barrier, group, record and task: other things that are built on a line.
//   - fence: receivers that refuse the tokens of deposed leaders.
//   - metrics and metrics/health: what elections tell of themselves, for metrics and for probes;
//     metrics/prometheus and metrics/otel hand it on. adapters has adapters to other libraries.
//   - zookeeper, etcd, consul and local are drivers, and so are postgres and kubernetes, each a
//     module of its own. A program links only those that it imports.
//   - memory is a driver for tests: a coordinator inside the process, with faults on demand.
//   - conformance checks whether a driver, and a coordinator, keep the contract.
//   - migrate moves a live election from one coordinator to another.
//   - spread keeps each election on one of several clusters, chosen by its name.
//   - backend is the contract between all of these and the drivers, for people who write a driver.
//     Its package comment has the glossary: coordinator, session, member, token, deadline, margin.
//   - cmd/succession is the command.
//
// The rest of the tree, and how it is tested, is in CONTRIBUTING.md.
package succession

import (
	"context"
	"errors"
	"fmt"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
)

// A Backend is a process's handle on one coordinator. All elections, locks and records of a process
// share one, and with it one session. It is safe for concurrent use. Close ends the session, and
// with it all members that the process has joined.
type Backend = backend.Backend

// A Record is a small value in the coordinator, with its version.
type Record = backend.Record

// A Version is the version of a record: it changes with each write. [Any] stands for any version.
type Version = backend.Version

// What a caller can give in place of a version.
const (
	Absent = backend.Absent // there is no record
	Any    = backend.Any    // any version, or no record
)

// Errors that calls on a coordinator return, for use with [errors.Is]. The errors of leadership are
// in package elect.
var (
	// ErrUnavailable says that the coordinator could not be reached, or that its answer was lost: a
	// write may have taken effect. It may pass.
	ErrUnavailable = backend.ErrUnavailable
	// ErrSessionEnded says that the session has ended, and with it the places in line.
	ErrSessionEnded = backend.ErrSessionEnded
	// ErrNotMember says that a member no longer stands in line. A guarded write was not made.
	ErrNotMember = backend.ErrNotMember
	// ErrVersion says that a record has another version than the caller named. It was not written.
	ErrVersion = backend.ErrVersion
	// ErrSealed says that the election has moved to another coordinator.
	ErrSealed = backend.ErrSealed
	// ErrReset says that the coordinator was rebuilt, or restored from a backup. Raise the fence,
	// then restart this process.
	ErrReset = backend.ErrReset
	// ErrDenied says that the coordinator refuses the credentials, or the right.
	ErrDenied = backend.ErrDenied
	// ErrInvalid says that an argument, an option or a URL is not allowed. The message says what is
	// allowed.
	ErrInvalid = backend.ErrInvalid
	// ErrHeader says that another version of this library, or a stranger, has written a header that
	// this version cannot read.
	ErrHeader = backend.ErrHeader
	// ErrLine says that the order of a line is not certain, because of an entry that a client of another
	// library, or a person, has made. The message names it. It passes when the entry has gone.
	ErrLine = backend.ErrLine
	// ErrForeign says that a member stands in a line of another kind, such as one that is no item in a queue.
	ErrForeign = backend.ErrForeign
	// ErrClosed says that the backend was closed.
	ErrClosed = backend.ErrClosed
)

// A SealedError is an [ErrSealed] that says where the election has moved; see [errors.As].
type SealedError = backend.SealedError

// Open returns a handle on the coordinator that the URL names, such as
// "etcd://h1:2379,h2:2379/app". It checks the URL, and the files that it names, at once: the error
// says what is wrong, and lists what is known. It does not connect and does not block, as in
// package database/sql, so a program can start before its coordinator. The first call that needs
// the coordinator connects. [elect.Election] Run, and every call that waits in line, tries again
// until the coordinator is there; other calls fail with [ErrUnavailable] after the connect timeout,
// four seconds unless the URL says otherwise.
//
// Import the package of each driver that a URL may name. The caller closes the backend.
//
// [elect.Election]: https://pkg.go.dev/github.com/succession-dev/succession/elect#Election
func Open(url string) (Backend, error) {
	b, err := coordinator.DefaultMux.Open(url)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Connect is [Open] for a program that must know at once whether the coordinator is there: it also
// opens the session. It blocks until the coordinator has answered, ctx ends, or the connect timeout
// has passed ([ErrUnavailable]).
func Connect(ctx context.Context, url string) (Backend, error) {
	b, err := Open(url)
	if err != nil {
		return nil, err
	}
	if several, ok := b.(interface{ Reach(context.Context) error }); ok {
		err = several.Reach(ctx)
	} else {
		_, err = b.Session(ctx)
	}
	if err == nil {
		return b, nil
	}
	_ = b.Close()                                       // there is no session that could be left
	if ctx.Err() != nil && !errors.Is(err, ctx.Err()) { // drivers return the cause of ctx
		err = fmt.Errorf("%w (%w)", err, ctx.Err())
	}
	return nil, err
}
