package engine

import (
	"cmp"
	"context"
	"math"
	"os/exec"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/internal/calm"
)

// A Coordinator is what trials know of the coordinator under test. Fields without a comment
// are those of [conformance.Harness].
//
// [conformance.Harness]: https://pkg.go.dev/github.com/succession-dev/succession/conformance#Harness
type Coordinator struct {
	TTL, Slack, Latency time.Duration
	Open                func(ctx context.Context) (backend.Backend, error)
	Prefix              string
	Costs               map[string]int64

	// Elections makes a candidate's handle on an election.
	Elections election.Maker
	// Faults is what can be done to the coordinator and its clients.
	Faults Faults
	// Abilities are shared by all trials of a run.
	Abilities *Abilities
	// Calm measures how busy the machine is. All trials of a run share it.
	Calm Calm
	// Deadline is when all trials must be over. Zero is never.
	Deadline time.Time
}

// Calm measures how busy the machine is. A [calm.Monitor] does.
type Calm interface {
	// Since returns what was measured from the instant until now.
	Since(from time.Time) calm.Reading
}

// Faults are the faults of a harness, in a form in which one method injects all of them.
type Faults interface {
	// Has reports whether the harness has the fault.
	Has(f Fault) bool
	// Inject injects a fault into its target. undo heals the fault. It is nil if the fault
	// cannot be healed.
	Inject(ctx context.Context, f Fault, at Target) (undo func(context.Context) error, err error)
	// InjectServer injects a fault into a server of the cluster: Kill, Pause or Isolate.
	InjectServer(f Fault, server int) (undo func(context.Context) error, err error)
	// HoldBack lets skip writes of the client pass, and holds the next one back until release is
	// called. held reports whether there is one.
	HoldBack(b backend.Backend, skip int) (held func() bool, release func())
	// Process returns a command that runs a candidate in a process of its own.
	Process(election, id string) *exec.Cmd
	// Requests returns how many requests the client has sent.
	Requests(b backend.Backend) int64
	// Bytes returns how many bytes have passed between the client and the coordinator.
	Bytes(b backend.Backend) int64
	// Servers returns the number of servers in the cluster. Leader returns the index of the
	// server that leads it, and Of that of the server to which the client talks.
	Servers() int
	Leader(ctx context.Context) (int, error)
	Of(b backend.Backend) int
	// Failover opens a client that knows all servers.
	Failover(ctx context.Context) (backend.Backend, error)
	// Standby starts a primary and a standby, of the fault Promote or PromoteBeside.
	Standby(ctx context.Context, f Fault) (*Replica, error)
}

// A Replica is a coordinator of a primary and a standby, to which the primary copies its writes.
// All its fields are set.
type Replica struct {
	// Open returns a client of both servers; see Open of [conformance.Harness]. Clients go to the
	// server that takes writes.
	Open func(ctx context.Context) (backend.Backend, error)
	// Lag stops the copying. It returns when the standby has all writes that were acknowledged
	// before Lag was called.
	Lag func(ctx context.Context) error
	// Promote makes the standby take over with the writes that it has. It returns when the standby
	// takes writes. Before that the primary is killed, or it goes on serving, as the fault says.
	Promote func(ctx context.Context) error
	// Close ends both servers.
	Close func()
}

// A Target is what a fault hits: a client, a member, a line, or the whole coordinator.
type Target struct {
	Client backend.Backend
	Member backend.Member
	Line   string
	Shift  time.Duration // by which Clock sets the coordinator's clock
}

// Now makes a verb look once without waiting.
const Now time.Duration = 0

// Soon bounds the time that a healthy coordinator needs for anything that it does at once.
func (c *Coordinator) Soon() time.Duration { return cmp.Or(c.Latency, 2*time.Second) }

// Crash bounds the time from a client's silence to the departure of its members.
func (c *Coordinator) Crash() time.Duration { return c.TTL + c.Slack + c.Soon() }

// Recovery bounds the time from the end of a fault of the whole coordinator until
// clients have found it again, and sessions that did not survive have ended.
func (c *Coordinator) Recovery() time.Duration { return 3*c.TTL + c.Slack + 3*c.Soon() }

// Limit is the time after which the watchdog ends a rule. No rule that passes comes near it.
func (c *Coordinator) Limit() time.Duration { return 40*c.TTL + 10*c.Slack + 20*c.Soon() }

// left is the time until Deadline.
func (c *Coordinator) left() time.Duration {
	if c.Deadline.IsZero() {
		return math.MaxInt64
	}
	return time.Until(c.Deadline)
}

// Tick is the time between two looks of a verb that waits.
func (c *Coordinator) Tick() time.Duration {
	return min(max(c.TTL/200, time.Millisecond), 20*time.Millisecond)
}

// Recheck bounds the time after which a waiting candidate asks again, even if nothing wakes it.
// In package elect that is 1.25 TTL, or 1.25 s if sessions do not end by time.
func (t *Trial) Recheck() time.Duration {
	d := t.TTL
	if !t.Can(Deadlines) {
		d = time.Second
	}
	return d + d/4 + t.Soon()
}
