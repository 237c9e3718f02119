// Package coordinator reads the URL that names a coordinator, and finds its driver: each driver
// registers a description of itself from init ([Register]). Applications use package succession,
// which opens URLs by [DefaultMux]. If you write a driver or a tool, read on at [Driver].
package coordinator

import (
	"context"
	"time"

	"github.com/succession-dev/succession/backend"
)

// An Opener makes a backend from a URL. It reads the parameters that it knows from u, and
// refuses the others with [URL.Err]. It does not connect, and does not block: the first
// [backend.Backend] Session does. It reads the files that u names, so that its error tells of
// one that is missing.
type Opener func(u *URL) (backend.Backend, error)

// A Driver describes a driver and its kind of coordinator. Each driver registers one ([Register]).
// Programs that open a URL need Scheme and Open alone. All other fields are for tools, such as the
// command of this module: a tool knows no driver by name, reads what it needs here, and says so if
// a field that it needs is empty. These fields may change until 1.0, as new coordinators show what
// there is to tell.
//
// The funcs may be called from several goroutines at once. They send nothing and do not block, except for
// files of this machine that a URL names.
type Driver struct {
	// Scheme is the scheme of the driver's URLs, and the field Backend of its errors. It is required.
	Scheme string

	// Open makes the backend of a URL. It is required.
	Open Opener

	// Title is what people call the coordinator, such as "ZooKeeper". Empty is Scheme.
	Title string

	// Example is a URL of the driver, such as "etcd://h1:2379,h2:2379/app". About says in a few
	// words what such a URL names, such as "an etcd cluster".
	Example, About string

	// InProcess says that the coordinator lives inside one process, so that no other process can
	// use it.
	InProcess bool

	// Port is where servers listen if a URL does not say it, such as "2379". Empty says that a URL
	// names no servers.
	Port string

	// TLS reports whether the driver would speak TLS to the servers of u. A driver that can has the
	// parameters tls=on and server-name=NAME, the name in the certificates of the servers if that
	// is not the host. Nil says that it cannot, or that each connection begins without TLS and then
	// asks for it, on the same port.
	TLS func(u *URL) bool

	// Probe tells servers of this kind from others.
	Probe Probe

	// Rights returns what an administrator has to grant for one election on the coordinator of u,
	// as the tools of the coordinator read it. It returns [backend.ErrInvalid] if a parameter is
	// wrong or unknown. It does not need the files that u names: they may be on another machine. Nil
	// says that there is nothing to grant.
	Rights func(u *URL, election string) (string, error)

	// Setup returns what an administrator has to apply to the coordinator of u once, before its
	// first session, as the tools of the coordinator read it. It returns errors as Rights does. Nil
	// says that there is nothing to apply.
	Setup func(u *URL) (string, error)

	// Operator returns an operator of the coordinator of u. It returns [backend.ErrInvalid] if a
	// parameter, or a file that it names, is wrong. Nil says that there is none; see
	// [Mux.Operator].
	Operator func(u *URL) (Operator, error)

	// Slack returns how much longer than the session time the coordinator may take to end a silent
	// session. Nil means 0.
	Slack func(ttl time.Duration) time.Duration

	// Unfit has rules of package conformance that cannot be checked on such a coordinator while it
	// is in use: the rule's ID, and why.
	Unfit map[string]string
}

// A Probe finds out what is at the address of a server: the URL may name a wrong port, or a wrong
// scheme. The zero Probe finds out nothing.
type Probe struct {
	// Ask is what is sent on a new connection, without TLS. It contains no secret and changes nothing.
	Ask string
	// Answers are texts. Each server of the kind sends at least one of them in its answer to Ask,
	// before it closes the connection. Ask must make it close the connection.
	Answers []string
}

// An Operator does to a coordinator what people do with its own tools: it looks at what is stored,
// and deletes members and whole elections without asking the processes that joined them. Its
// methods take names of elections and records, without the prefix of the URL.
//
// Tests judge a driver by how its sessions react to such acts. So an operator is an independent
// client: it uses the client library of the coordinator, and nothing of the driver's sessions.
//
// Each method connects anew, and leaves no connection and no goroutine. It blocks until the coordinator has
// answered, or ctx ends. Its errors are those of the library. An Operator is safe for concurrent use.
type Operator interface {
	// Exists reports whether anything is stored at the name or below it.
	Exists(ctx context.Context, name string) (bool, error)
	// Remove deletes a member. It succeeds if the member does not stand any more.
	Remove(ctx context.Context, m backend.Member) error
	// Drop deletes an election and its members in one step, or, if the coordinator has no such step, the last
	// member first, so that nobody becomes first by it. It succeeds if there is no such election. Nothing is to be
	// stored below the election but its members: some coordinators delete that too, and others fail.
	Drop(ctx context.Context, election string) error
	// Clear deletes everything at the name and below it. The name must not be empty: that would
	// mean everything that is stored.
	Clear(ctx context.Context, name string) error
}
