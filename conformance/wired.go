package conformance

import (
	"context"
	"os/exec"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/conformance/internal/engine"
)

// coordinator returns what trials must know of the harness.
func (h *Harness) coordinator() *engine.Coordinator {
	c := &engine.Coordinator{
		TTL: h.TTL, Slack: h.Slack, Latency: h.Latency, Open: h.Open, Prefix: h.Prefix, Costs: h.Costs,
		Elections: h.election, Faults: wired{h}, Abilities: h.abilities, Calm: h.calm, Deadline: h.deadline,
	}
	if c.Elections == nil {
		c.Elections = election.New
	}
	return c
}

// wired implements [engine.Faults] with the faults of a harness.
type wired struct{ h *Harness }

func (w wired) Has(f Fault) bool { return w.h.can(f) }

func (w wired) Inject(ctx context.Context, f Fault, at engine.Target) (undo func(context.Context) error, err error) {
	have := &w.h.Faults
	var heal func()
	switch f {
	case Cut, Mute, Deafen, Sever, Hide:
		heal = map[Fault]func(backend.Backend) func(){
			Cut: have.Cut, Mute: have.Mute, Deafen: have.Deafen, Sever: have.Sever, Hide: have.Hide,
		}[f](at.Client)
	case Expire:
		err = have.Expire(ctx, at.Client)
	case LoseAnswer:
		have.LoseAnswer(at.Client)
	case Kill:
		have.Kill(at.Client)
	case Remove:
		err = have.Remove(ctx, at.Member)
	case Drop:
		err = have.Drop(ctx, at.Line)
	case Restart, Reset, Compact:
		err = map[Fault]func(context.Context) error{Restart: have.Restart, Reset: have.Reset, Compact: have.Compact}[f](ctx)
	case Pause:
		heal, err = have.Pause(ctx)
	case Clock:
		heal, err = have.Clock(ctx, at.Shift)
	case Rewind:
		return have.Rewind(ctx)
	}
	return undone(heal), err
}

func (w wired) InjectServer(f Fault, i int) (undo func(context.Context) error, err error) {
	switch s := w.h.Faults.Cluster.Servers[i]; f {
	case Kill:
		return s.Start, s.Kill()
	case Pause:
		return func(context.Context) error { return s.Resume() }, s.Pause()
	default:
		heal, err := s.Isolate()
		return undone(heal), err
	}
}

func undone(heal func()) func(context.Context) error {
	if heal == nil {
		return nil
	}
	return func(context.Context) error { heal(); return nil }
}

func (w wired) Standby(ctx context.Context, f Fault) (*engine.Replica, error) {
	if f == PromoteBeside {
		return w.h.Faults.PromoteBeside(ctx)
	}
	return w.h.Faults.Promote(ctx)
}
func (w wired) HoldBack(b backend.Backend, skip int) (held func() bool, release func()) {
	return w.h.Faults.HoldBack(b, skip)
}
func (w wired) Process(election, id string) *exec.Cmd { return w.h.Faults.Process(election, id) }
func (w wired) Requests(b backend.Backend) int64      { return w.h.Faults.Requests(b) }
func (w wired) Bytes(b backend.Backend) int64         { return w.h.Faults.Bytes(b) }
func (w wired) Servers() int                          { return len(w.h.Faults.Cluster.Servers) }
func (w wired) Leader(ctx context.Context) (server int, _ error) {
	return w.h.Faults.Cluster.Leader(ctx)
}
func (w wired) Of(b backend.Backend) int { return w.h.Faults.Cluster.Of(b) }
func (w wired) Failover(ctx context.Context) (backend.Backend, error) {
	return w.h.Faults.Cluster.Failover(ctx)
}
