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

// Faults is what a harness can do to its coordinator. A nil func cannot be done.
// All are called with what Open returned. A func without an error has done its
// work when it returns. What undoes a fault is called once.
type Faults struct {
	// Expire has the coordinator end the client's session, which it does not tell
	// the client in any other way than usual. It returns when that is done.
	Expire func(ctx context.Context, b backend.Backend) error

	// Cut stops all traffic between the client and the coordinator, both ways
	// and without closing connections. What is sent meanwhile should arrive when
	// heal is called.
	Cut func(b backend.Backend) (heal func())

	// Mute stops the traffic from the client to the coordinator alone: what the
	// coordinator sends still arrives, and what the client sends arrives when heal
	// is called.
	Mute func(b backend.Backend) (heal func())

	// Deafen stops the traffic from the coordinator to the client alone: its
	// requests arrive and take effect, and the answers arrive when heal is called.
	Deafen func(b backend.Backend) (heal func())

	// Sever has every connection of the client reset as soon as it carries a
	// request, which may have taken effect or not, until heal is called.
	Sever func(b backend.Backend) (heal func())

	// Hide makes the coordinator's address go away for this client: its connections
	// break and none can be made until heal is called.
	Hide func(b backend.Backend) (heal func())

	// LoseAnswer lets the client's next write take effect and loses its answer.
	LoseAnswer func(b backend.Backend)

	// Kill makes the client vanish without a word to the coordinator, as a crash
	// does. The suite calls the client's Close later, to free what it holds in
	// this process.
	Kill func(b backend.Backend)

	// Process returns a command, not started, that runs [Stand] for a candidate of
	// that ID in the election, on a backend of its own with the settings of Open, in
	// a process of its own. The suite sets its standard input and output, gives it a
	// process group, starts it, stops and continues it by signals (SIGSTOP, SIGCONT),
	// and kills it. A system without these signals lacks it.
	Process func(election, id string) *exec.Cmd

	// Restart restarts the coordinator with its data, and returns when it serves
	// again.
	Restart func(ctx context.Context) error

	// Pause stops the coordinator; resume lets it go on.
	Pause func(ctx context.Context) (resume func(), err error)

	// Remove deletes the member as an operator would, past its owner.
	Remove func(ctx context.Context, m backend.Member) error

	// Drop deletes everything of the election as an operator would: its members,
	// its record, its path.
	Drop func(ctx context.Context, line string) error

	// Reset rebuilds the coordinator empty, with a log that begins again, as an
	// operator does who lost its data. It returns when the coordinator serves
	// again. What other rules left there may be lost.
	Reset func(ctx context.Context) error

	// Compact has the coordinator forget the history of its log up to now, as far as
	// it keeps one for those who watch from an earlier point.
	Compact func(ctx context.Context) error

	// Rewind remembers the coordinator's state; back restores it as an operator
	// restores a snapshot, its log index included, and returns when the coordinator
	// serves again. What other rules did meanwhile is lost.
	Rewind func(ctx context.Context) (back func(context.Context) error, err error)

	// Clock sets the wall clock that the coordinator reads forth by shift, or back
	// where that is negative; restore sets it right.
	Clock func(ctx context.Context, shift time.Duration) (restore func(), err error)

	// Cluster is what can be done to single servers; nil for a coordinator of fewer
	// than three.
	Cluster *ClusterFaults

	// Requests is how many requests the client has sent so far, heartbeats
	// included.
	Requests func(b backend.Backend) int64
}

// ClusterFaults is what can be done to the servers of a coordinator that has three
// of them or more.
type ClusterFaults struct {
	Servers []ServerFaults
	// Leader returns the index of the server that is the coordinator's own leader.
	// It waits for one while there is none.
	Leader func(ctx context.Context) (int, error)
	// Of returns the index of the server that the client talks to.
	Of func(b backend.Backend) int
}

// ServerFaults is what can be done to one server. All but Isolate must be there.
type ServerFaults struct {
	Kill   func() error                    // SIGKILL
	Start  func(ctx context.Context) error // after Kill, with its data; returns when it serves
	Pause  func() error                    // SIGSTOP
	Resume func() error
	// Isolate cuts the server off from the other servers, not from its clients. Nil
	// where that cannot be done.
	Isolate func() (heal func(), err error)
}

// A Fault names something that rules need: a field of [Faults], [Isolate], or an ability
// of the backend: [Deadlines], [Records] or [Pins].
type Fault = engine.Fault

// The faults, named as in [Faults].
const (
	Expire     = engine.Expire
	Cut        = engine.Cut
	Mute       = engine.Mute
	Deafen     = engine.Deafen
	Sever      = engine.Sever
	Hide       = engine.Hide
	LoseAnswer = engine.LoseAnswer
	Kill       = engine.Kill
	Process    = engine.Process
	Restart    = engine.Restart
	Pause      = engine.Pause
	Remove     = engine.Remove
	Drop       = engine.Drop
	Reset      = engine.Reset
	Compact    = engine.Compact
	Rewind     = engine.Rewind
	Clock      = engine.Clock
	Cluster    = engine.Cluster
	Requests   = engine.Requests

	// Isolate is the Isolate of every server of the [Cluster].
	Isolate = engine.Isolate

	// Deadlines is the ability to end sessions by time. A coordinator that learns of a
	// client's end in another way lacks it: its Session TTL is 0.
	Deadlines = engine.Deadlines
	// Records is the ability to keep records. Without it the methods of
	// [backend.Records] return an error that matches [errors.ErrUnsupported].
	Records = engine.Records
	// Pins is the ability to make members permanent. Without it Session Pin returns an
	// error that matches [errors.ErrUnsupported].
	Pins = engine.Pins
)

// faultNames are all, in the order of documentation.
var faultNames = []Fault{
	Expire, Cut, Mute, Deafen, Sever, Hide, LoseAnswer, Kill, Process, Restart, Pause, Remove, Drop,
	Reset, Compact, Rewind, Clock, Cluster, Isolate, Requests, Deadlines, Records, Pins,
}

// disturbing are the faults that hit more than the clients of one rule.
var disturbing = []Fault{Restart, Pause, Reset, Compact, Rewind, Clock, Cluster, Isolate}

// provides reports whether Faults has what f names.
func (h *Harness) provides(f Fault) bool {
	switch {
	case f == Isolate:
		return h.Faults.Cluster != nil && h.Faults.Cluster.isolates()
	case engine.IsAbility(f):
		return false
	}
	field := reflect.ValueOf(h.Faults).FieldByName(string(f))
	return field.IsValid() && !field.IsZero()
}

// can reports whether there is what f names, as far as is known.
func (h *Harness) can(f Fault) bool {
	_, lacking := h.Lacks[f]
	return !lacking && (engine.IsAbility(f) || h.provides(f))
}

func (c *ClusterFaults) isolates() bool {
	return !slices.ContainsFunc(c.Servers, func(s ServerFaults) bool { return s.Isolate == nil })
}

// whole reports whether the cluster has all that it must have.
func (c *ClusterFaults) whole() bool {
	return len(c.Servers) >= 3 && c.Leader != nil && c.Of != nil &&
		!slices.ContainsFunc(c.Servers, func(s ServerFaults) bool {
			return s.Kill == nil || s.Start == nil || s.Pause == nil || s.Resume == nil
		})
}
