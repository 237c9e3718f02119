package conformance

import (
	"context"
	"fmt"
	"os/exec"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/conformance/internal/engine"
)

// coordinator returns what trials know of the harness.
func (h *Harness) coordinator() *engine.Coordinator {
	c := &engine.Coordinator{
		TTL: h.TTL, Slack: h.Slack, Latency: h.Latency, Open: h.Open, Prefix: h.Prefix,
		Elections: h.election, Faults: wired{h}, Abilities: h.abilities,
	}
	if c.Elections == nil {
		c.Elections = election.New
	}
	return c
}

// wired has the faults of a harness put in by one func.
type wired struct{ h *Harness }

func (w wired) Has(f Fault) bool { return w.h.can(f) }

func (w wired) Inject(ctx context.Context, f Fault, at engine.Target) (undo func(context.Context) error, err error) {
	have := &w.h.Faults
	var heal func()
	switch {
	case at.Server > 0:
		return have.Cluster.Servers[at.Server-1].inject(f)
	case f == Expire:
		err = have.Expire(ctx, at.Client)
	case f == Cut:
		heal = have.Cut(at.Client)
	case f == Mute:
		heal = have.Mute(at.Client)
	case f == Deafen:
		heal = have.Deafen(at.Client)
	case f == Sever:
		heal = have.Sever(at.Client)
	case f == Hide:
		heal = have.Hide(at.Client)
	case f == LoseAnswer:
		have.LoseAnswer(at.Client)
	case f == Kill:
		have.Kill(at.Client)
	case f == Restart:
		err = have.Restart(ctx)
	case f == Pause:
		heal, err = have.Pause(ctx)
	case f == Remove:
		err = have.Remove(ctx, at.Member)
	case f == Drop:
		err = have.Drop(ctx, at.Line)
	case f == Reset:
		err = have.Reset(ctx)
	case f == Compact:
		err = have.Compact(ctx)
	case f == Rewind:
		return have.Rewind(ctx)
	case f == Clock:
		heal, err = have.Clock(ctx, at.Shift)
	default:
		err = fmt.Errorf("%s cannot be put in", f)
	}
	return undone(heal), err
}

// inject puts in a fault of one server.
func (s ServerFaults) inject(f Fault) (undo func(context.Context) error, err error) {
	switch f {
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

func (w wired) Process(election, id string) *exec.Cmd { return w.h.Faults.Process(election, id) }
func (w wired) Requests(b backend.Backend) int64      { return w.h.Faults.Requests(b) }
func (w wired) Servers() int                          { return len(w.h.Faults.Cluster.Servers) }
func (w wired) Leader(ctx context.Context) (server int, _ error) {
	return w.h.Faults.Cluster.Leader(ctx)
}
func (w wired) Of(b backend.Backend) int { return w.h.Faults.Cluster.Of(b) }
