package conformance

import (
	"context"
	"os/exec"
	"reflect"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
)

// Faults are what a harness can do to its coordinator and its clients. A nil func means that the
// harness does not provide that fault. Each b is a client that [Harness] Open returned. A func that
// returns no error has done its work when it returns. The suite calls the func that undoes a fault
// once.
type Faults struct {
	// Expire makes the coordinator end the client's session. The client learns of it only in the
	// usual way. Expire returns when the session has ended.
	Expire func(ctx context.Context, b backend.Backend) error

	// Cut stops all traffic between the client and the coordinator, in both directions and
	// without closing connections. What is sent meanwhile should arrive when heal is called.
	Cut func(b backend.Backend) (heal func())

	// Mute stops only the traffic from the client to the coordinator. What the coordinator
	// sends still arrives, and what the client sends arrives when heal is called.
	Mute func(b backend.Backend) (heal func())

	// Deafen stops only the traffic from the coordinator to the client. The client's
	// requests arrive and take effect, and the answers arrive when heal is called.
	Deafen func(b backend.Backend) (heal func())

	// Sever resets every connection of the client as soon as it carries a request, until
	// heal is called. The request may have taken effect or not.
	Sever func(b backend.Backend) (heal func())

	// Hide takes the coordinator's address away from this client: its connections break,
	// and it can make no others until heal is called.
	Hide func(b backend.Backend) (heal func())

	// LoseAnswer lets the client's next write take effect and loses its answer.
	LoseAnswer func(b backend.Backend)

	// HoldBack lets skip writes of the client pass, and holds the next one back on its way to the
	// coordinator. That write arrives when release is called, whatever has become of the client,
	// its session and its members by then. The connection that carries it breaks for the client,
	// which can make others at once. A heartbeat is no write. held reports whether a write is held
	// back, before the client can know. release returns when the coordinator has answered the
	// write. If none is held back, release ends the fault.
	HoldBack func(b backend.Backend, skip int) (held func() bool, release func())

	// Kill makes the client vanish without telling the coordinator, as a crash does. The
	// suite calls the client's Close later, to free what it holds in this process.
	Kill func(b backend.Backend)

	// Process returns a command, not started, that runs [Stand] for a candidate with that
	// ID in the election, on a backend of its own with the settings of Open. The suite sets
	// the command's standard input and output, gives it a process group, starts it, stops and
	// continues it by signals (SIGSTOP, SIGCONT), and kills it. A system without these signals
	// lacks this fault.
	Process func(election, id string) *exec.Cmd

	// Restart restarts the coordinator with its data, and returns when it serves
	// again.
	Restart func(ctx context.Context) error

	// Pause stops the coordinator; resume lets it go on.
	Pause func(ctx context.Context) (resume func(), err error)

	// Remove deletes the member as an operator would, without asking the process that
	// joined it.
	Remove func(ctx context.Context, m backend.Member) error

	// Drop deletes everything of the election as an operator would: its members,
	// its record, its path.
	Drop func(ctx context.Context, line string) error

	// Reset rebuilds the coordinator empty, with a log that begins again, as an operator
	// does after its data were lost. It returns when the coordinator serves again. What other
	// rules left there may be lost.
	Reset func(ctx context.Context) error

	// Compact makes the coordinator forget the history of its log up to now, if it keeps one for
	// clients that watch from an earlier point.
	Compact func(ctx context.Context) error

	// Rewind remembers the coordinator's state; back restores it as an operator
	// restores a snapshot, its log index included, and returns when the coordinator
	// serves again. What other rules did meanwhile is lost.
	Rewind func(ctx context.Context) (back func(context.Context) error, err error)

	// Promote starts another coordinator like the one under test: a primary, and a standby that
	// follows it and takes over. It is for a coordinator that acknowledges writes which a standby
	// may not have yet. A coordinator lacks this fault if all that it acknowledges is on a quorum
	// of servers, or if it has no standby.
	Promote func(ctx context.Context) (*Replica, error)

	// PromoteBeside is Promote for a primary that acknowledges only writes that the standby has.
	// The standby takes over, and the primary also goes on serving.
	PromoteBeside func(ctx context.Context) (*Replica, error)

	// Clock sets the coordinator's wall clock forward by shift, or back if shift is
	// negative. restore sets it right again.
	Clock func(ctx context.Context, shift time.Duration) (restore func(), err error)

	// Cluster has the faults of single servers. It is nil for a coordinator with fewer than three
	// servers.
	Cluster *ClusterFaults

	// Requests returns how many requests the client has sent so far, heartbeats
	// included.
	Requests func(b backend.Backend) int64

	// Bytes returns how many bytes have passed so far between the client and the coordinator, in
	// both directions.
	Bytes func(b backend.Backend) int64
}

// ClusterFaults is what can be done to single servers of a coordinator that has at least
// three.
type ClusterFaults struct {
	Servers []ServerFaults
	// Leader returns the index of the server that leads the others. It waits while there is
	// none.
	Leader func(ctx context.Context) (int, error)
	// Of returns the index of the server that the client talks to.
	Of func(b backend.Backend) int
	// Failover opens a client that knows all servers, as in production, and that goes to another
	// server when its own does not answer. It is nil if a client can know only one.
	Failover func(ctx context.Context) (backend.Backend, error)
}

// A Replica is a coordinator of a primary and a standby, which [Faults] Promote or PromoteBeside has started. All of its fields
// are required:
//
//	Open    func(ctx context.Context) (backend.Backend, error) // a client of both servers, which goes to the one that takes writes
//	Lag     func(ctx context.Context) error // stops the copying, when the standby has all writes that were acknowledged before
//	Promote func(ctx context.Context) error // the standby takes over with the writes that it has; returns when it takes writes
//	Close   func()                          // ends both servers
//
// Before it promotes the standby, Promote kills the primary, or lets it serve on, as the fault says.
type Replica = engine.Replica

// ServerFaults are the faults of one server. All except Isolate are required.
type ServerFaults struct {
	Kill   func() error                    // SIGKILL
	Start  func(ctx context.Context) error // after Kill, with its data; returns when it serves
	Pause  func() error                    // SIGSTOP
	Resume func() error
	// Isolate cuts the server off from the other servers, but not from its clients. It is
	// nil if that cannot be done.
	Isolate func() (heal func(), err error)
}

// A Fault names something that rules need: a field of [Faults], [Isolate], [Failover], or an ability
// of the backend: [Deadlines], [Shares], [Records], [Pins], [Items] or [Places].
type Fault = engine.Fault

// The faults, named as in [Faults].
const (
	Expire        = engine.Expire
	Cut           = engine.Cut
	Mute          = engine.Mute
	Deafen        = engine.Deafen
	Sever         = engine.Sever
	Hide          = engine.Hide
	LoseAnswer    = engine.LoseAnswer
	HoldBack      = engine.HoldBack
	Kill          = engine.Kill
	Process       = engine.Process
	Restart       = engine.Restart
	Pause         = engine.Pause
	Remove        = engine.Remove
	Drop          = engine.Drop
	Reset         = engine.Reset
	Compact       = engine.Compact
	Rewind        = engine.Rewind
	Promote       = engine.Promote
	PromoteBeside = engine.PromoteBeside
	Clock         = engine.Clock
	Cluster       = engine.Cluster
	Requests      = engine.Requests
	Bytes         = engine.Bytes

	// Isolate is the field Isolate of each server in [Cluster]. A coordinator that lacks Cluster
	// lacks this, too.
	Isolate = engine.Isolate
	// Failover is the field Failover of [Cluster]. A coordinator that lacks Cluster lacks this,
	// too.
	Failover = engine.Failover

	// Deadlines is the ability to end sessions by time. A coordinator that notices the end of
	// a client in another way lacks it: the TTL of its sessions is 0.
	Deadlines = engine.Deadlines
	// Shares is the ability to have shared members. Without it Session JoinShared returns an
	// error that matches [errors.ErrUnsupported].
	Shares = engine.Shares
	// Records is the ability to keep records. Without it Session Get, Put, Delete, List, ReadAll and
	// Watch return an error that matches [errors.ErrUnsupported].
	Records = engine.Records
	// Pins is the ability to pin members. Without it Session Pin returns an
	// error that matches [errors.ErrUnsupported].
	Pins = engine.Pins
	// Items is the ability to keep items. Without it Session Append, Remove and Free return an
	// error that matches [errors.ErrUnsupported].
	Items = engine.Items
	// Places is the ability to tell a member that joins an empty line that it is first. Without it
	// Session Join returns no place.
	Places = engine.Places
)

// faultNames are all faults and abilities, in the order of the documentation.
var faultNames = []Fault{
	Expire, Cut, Mute, Deafen, Sever, Hide, LoseAnswer, HoldBack, Kill, Process, Restart, Pause, Remove, Drop,
	Reset, Compact, Rewind, Promote, PromoteBeside, Clock, Cluster, Isolate, Failover, Requests, Bytes, Deadlines, Shares, Records, Pins, Items,
	Places,
}

// disturbing are the faults that also hit clients of other rules.
var disturbing = []Fault{Restart, Pause, Reset, Compact, Rewind, Clock, Cluster, Isolate, Failover}

// provides reports whether Faults has what f names.
func (h *Harness) provides(f Fault) bool {
	switch {
	case f == Isolate:
		return h.Faults.Cluster != nil && h.Faults.Cluster.isolates()
	case f == Failover:
		return h.Faults.Cluster != nil && h.Faults.Cluster.Failover != nil
	case engine.IsAbility(f):
		return false
	}
	field := reflect.ValueOf(h.Faults).FieldByName(string(f))
	return field.IsValid() && !field.IsZero()
}

// can reports whether a rule can have f, as far as the harness says.
func (h *Harness) can(f Fault) bool {
	return !h.lacks(f) && (engine.IsAbility(f) || h.provides(f))
}

func (c *ClusterFaults) isolates() bool {
	return !slices.ContainsFunc(c.Servers, func(s ServerFaults) bool { return s.Isolate == nil })
}

// whole reports whether all required fields of c are there.
func (c *ClusterFaults) whole() bool {
	return len(c.Servers) >= 3 && c.Leader != nil && c.Of != nil &&
		!slices.ContainsFunc(c.Servers, func(s ServerFaults) bool {
			return s.Kill == nil || s.Start == nil || s.Pause == nil || s.Resume == nil
		})
}
