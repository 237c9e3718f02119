package engine

import (
	"context"
	"os/exec"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/election"
)

// A Coordinator is what trials know of the coordinator that they are about. Its fields are
// those of [conformance.Harness], unless they say more.
//
// [conformance.Harness]: https://pkg.go.dev/github.com/succession-dev/succession/conformance#Harness
type Coordinator struct {
	TTL, Slack, Latency time.Duration
	Open                func(ctx context.Context) (backend.Backend, error)
	Prefix              string

	// Elections returns a candidate's handle on an election.
	Elections election.Maker
	// Faults is what can be done to the coordinator and its clients.
	Faults Faults
	// Abilities are shared by all trials of a run.
	Abilities *Abilities
}

// Faults are the faults of a harness. They have one form here, so that one verb is enough.
type Faults interface {
	// Has reports whether the harness has the fault.
	Has(f Fault) bool
	// Inject injects a fault into its target. The func undo heals it; nil means that nothing
	// can.
	Inject(ctx context.Context, f Fault, at Target) (undo func(context.Context) error, err error)
	// InjectServer injects a fault into a server of the cluster: Kill, Pause or Isolate.
	InjectServer(f Fault, server int) (undo func(context.Context) error, err error)
	// Process returns a command that runs a candidate in a process of its own.
	Process(election, id string) *exec.Cmd
	// Requests returns how many requests the client has sent.
	Requests(b backend.Backend) int64
	// Servers returns how many servers there are in the cluster, Leader which of them
	// leads it, and Of to which the client talks.
	Servers() int
	Leader(ctx context.Context) (int, error)
	Of(b backend.Backend) int
}

// A Target is what a fault hits: a client, a member, a line, or the whole coordinator.
type Target struct {
	Client backend.Backend
	Member backend.Member
	Line   string
	Shift  time.Duration // by which Clock sets the coordinator's clock
}

// Now has a verb look once, and not wait.
const Now time.Duration = 0

// Soon bounds what a healthy coordinator does at once.
func (c *Coordinator) Soon() time.Duration {
	if c.Latency == 0 {
		return 2 * time.Second
	}
	return c.Latency
}

// Crash bounds the time from a client's silence to the departure of its members.
func (c *Coordinator) Crash() time.Duration { return c.TTL + c.Slack + c.Soon() }

// Recovery bounds the time from the end of a fault of the whole coordinator until
// clients have found it again and the sessions that did not survive have ended.
func (c *Coordinator) Recovery() time.Duration { return 3*c.TTL + c.Slack + 3*c.Soon() }

// Limit is the watchdog of a rule: far beyond what any passing rule takes.
func (c *Coordinator) Limit() time.Duration { return 40*c.TTL + 10*c.Slack + 20*c.Soon() }

// Tick is how often a verb that waits looks.
func (c *Coordinator) Tick() time.Duration {
	return min(max(c.TTL/200, time.Millisecond), 20*time.Millisecond)
}

// Recheck bounds the time after which a waiting candidate looks again by itself. That is 1.25
// TTL, or 1.25 s where sessions have no time (package elect).
func (t *Trial) Recheck() time.Duration {
	d := t.TTL
	if !t.Can(Deadlines) {
		d = time.Second
	}
	return d + d/4 + t.Soon()
}
