package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/logs"
	"github.com/succession-dev/succession/migrate/internal/composite"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// Errors of a composite, for use with errors.Is. An operator must act on each of them.
var (
	// ErrNotBegun says that no migration of the election has begun between these
	// two coordinators.
	ErrNotBegun = protocol.ErrNotBegun

	// ErrOther says that a migration is under way in which this process does not take part.
	ErrOther = protocol.ErrOther

	// ErrRefused says that a step of a migration cannot be taken as things are.
	ErrRefused = protocol.ErrRefused
)

// Options are the settings of a [Backend]. From and To are required.
type Options struct {
	// From and To are the addresses of the two coordinators, as the records of the
	// election and errors name them: the URLs to run a process with. Two URLs that differ only in
	// the order of hosts or in parameters mean the same coordinator, unless Consul's dc, namespace
	// or partition differ, or PostgreSQL's schema, or the context of a kubeconfig that both name. They
	// must hold no secret.
	From, To string
	// ID restricts the process to the migration whose ID is this one, or begins with it and a "-".
	// A migration that the process begins gets such an ID with a random end, so that no two
	// migrations have the same ID. Empty means any migration between these coordinators.
	ID string
	// Patience is how long a process that is first on From tries to get a member on To. It keeps
	// others from leading on From meanwhile, so it then gives up its member on From and joins at
	// the end. Zero means three session times of To, and 15 seconds at least, because a former
	// leader's member on To may stand for one or two session times.
	Patience time.Duration
	// Begin makes a process that joins an election begin its migration, if nobody has. It is for
	// rolling out a migration in one go. It says that the election is in use on From and nowhere
	// else; [Backend.Begin] says the same, and also checks it. No other process may say the
	// opposite. Without Begin, joining fails with [ErrNotBegun].
	Begin bool
	// Carry names more records on From that go with the election, besides those that leaders with
	// both coordinators have guarded. [Backend.Cutover] carries them over, and so does
	// [Backend.Finish] if they are not on To, also if they may have been deleted there. They are for one
	// election.
	Carry []string
	// Leave lets Cutover and Finish leave other records beside the election behind on From. Without
	// it both fail, and name these records.
	Leave bool
	// Logger gets what a person wants to know: members joined and given back, and the
	// cutover. Nil passes warnings on to [slog.Default], and discards the rest.
	Logger *slog.Logger
}

// A Backend is two coordinators that an election moves between, as one. It is safe
// for concurrent use.
type Backend struct {
	composite *composite.Backend
	sub       [2]backend.Backend // by side
	route     protocol.Route
	carry     []string
	leave     bool
	log       *slog.Logger
	err       error // what is wrong with the arguments; returned by every call
}

var (
	_ backend.Backend = (*Backend)(nil)
)

// New returns a backend for elections that move between from and to. It owns both from now on:
// Close closes them. It does not block and does not talk to the coordinators. The first call
// reports options that are not possible.
func New(from, to backend.Backend, o *Options) *Backend {
	if o == nil {
		o = new(Options)
	}
	b := &Backend{sub: [2]backend.Backend{from, to}, route: protocol.Route{From: o.From, To: o.To, ID: o.ID}, carry: o.Carry, leave: o.Leave, log: logs.Or(o.Logger)}
	switch {
	case from == nil || to == nil:
		b.err = fmt.Errorf("%w: New was given no backend", backend.ErrInvalid)
	case o.From == "" || o.To == "":
		b.err = fmt.Errorf("%w: Options From and To are needed: the addresses of the two coordinators", backend.ErrInvalid)
	case protocol.SameAddress(o.From, o.To):
		b.err = fmt.Errorf("%w: From and To, %s and %s, are one coordinator", backend.ErrInvalid, o.From, o.To)
	case o.Patience < 0:
		b.err = fmt.Errorf("%w: Patience %v is negative", backend.ErrInvalid, o.Patience)
	}
	for _, name := range o.Carry {
		b.err = cmp.Or(b.err, backend.CheckName(name))
	}
	co := composite.Options{Route: b.route, Patience: o.Patience, Log: b.log}
	if o.Begin {
		co.Begin = b.beginToJoin
	}
	b.composite = composite.New(b.sub, co)
	return b
}

// Session returns the live session, or opens one if there is none: a session with each coordinator,
// both at the same time; see [backend.Backend]. If From cannot be reached, it returns a session
// with To alone. That serves elections whose record on To says that they have moved; a call for any
// other election tries From again, or ends the session.
func (b *Backend) Session(ctx context.Context) (backend.Session, error) {
	if b.err != nil {
		return nil, composite.Wrap("session", "", b.err)
	}
	return b.composite.Session(ctx)
}

// Close ends the session and closes both backends, at the same time; see
// [backend.Backend].
func (b *Backend) Close() error {
	if b.err != nil {
		var errs []error
		for _, sub := range b.sub {
			if sub != nil {
				errs = append(errs, sub.Close())
			}
		}
		return errors.Join(errs...)
	}
	return b.composite.Close()
}
