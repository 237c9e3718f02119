package linear

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend"
)

// A fault does something to a client or to a server. If it lasts, it does so for about the time given.
type fault struct {
	name  string
	lasts bool
	do    func(ctx context.Context, d time.Duration, dice *rand.Rand) error
}

// strike lets faults happen, one after the other, until ctx ends. Each is over when strike returns.
func (r *run) strike(ctx context.Context, dice *rand.Rand) {
	faults := slices.Concat(r.clientFaults(), r.serverFaults())
	next := dice.Perm(len(faults)) // each once, and then by chance
	between := r.h.TTL / 8
	for i := 0; ; i++ {
		pause(ctx, between+time.Duration(dice.Int64N(int64(between)+1)))
		if ctx.Err() != nil {
			return
		}
		if i == len(next) {
			next = append(next, dice.IntN(len(faults)))
		}
		f := faults[next[i]]
		d := time.Duration((0.2 + 1.3*dice.Float64()) * float64(r.h.TTL))
		if i < len(faults) {
			d /= 3 // so that a short run has several
		}
		what := f.name
		if f.lasts {
			what += fmt.Sprintf(" for %v", d.Round(time.Millisecond))
		}
		r.logf("%v: %s", time.Since(r.began).Round(time.Millisecond), what)
		if err := f.do(ctx, d, dice); err != nil {
			r.fail(fmt.Errorf("%s: %w", f.name, err))
		}
	}
}

func (r *run) clientFaults() (all []fault) {
	f := r.h.Faults
	on := func(name string, lasts bool, do func(ctx context.Context, c *client, d time.Duration) error) {
		all = append(all, fault{name, lasts, func(ctx context.Context, d time.Duration, dice *rand.Rand) error {
			c := r.clients[dice.IntN(len(r.clients))]
			if _, err := c.backend(ctx); err != nil {
				return nil // the test is over, or a server is
			}
			return do(ctx, c, d)
		}})
	}
	healed := func(name string, do func(b backend.Backend) (heal func())) {
		on(name, true, func(ctx context.Context, c *client, d time.Duration) error {
			b, err := c.backend(ctx)
			if err != nil {
				return nil
			}
			heal := do(b)
			pause(ctx, d)
			heal()
			return nil
		})
	}
	for name, do := range map[string]func(backend.Backend) func(){"cut": f.Cut, "mute": f.Mute, "deafen": f.Deafen, "sever": f.Sever} {
		if do != nil {
			healed(name, do)
		}
	}
	slices.SortFunc(all, func(a, b fault) int { return strings.Compare(a.name, b.name) }) // the seed decides, and not the map
	if f.LoseAnswer != nil {
		on("lose an answer", false, func(ctx context.Context, c *client, _ time.Duration) error {
			if b, err := c.backend(ctx); err == nil {
				f.LoseAnswer(b)
			}
			return nil
		})
	}
	if f.Expire != nil {
		on("end a session", false, func(ctx context.Context, c *client, _ time.Duration) error {
			if b, err := c.backend(ctx); err == nil {
				c.endSession(func() { _ = f.Expire(ctx, b) }) // it may have ended by itself
			}
			return nil
		})
	}
	if f.Kill != nil {
		on("kill", false, func(ctx context.Context, c *client, _ time.Duration) error {
			if b, err := c.backend(ctx); err == nil {
				f.Kill(b)
				c.drop()
			}
			return nil
		})
	}
	on("close", false, func(_ context.Context, c *client, _ time.Duration) error { c.drop(); return nil })
	return all
}

const restart = "restart the server"

func (r *run) serverFaults() (all []fault) {
	f := r.h.Faults
	add := func(name string, do func(ctx context.Context, d time.Duration, dice *rand.Rand) error) {
		all = append(all, fault{name, name != restart, do})
	}
	// A fault that has begun is brought to its end, even if the time is over.
	lasting := context.WithoutCancel(r.ctx)
	if f.Cluster == nil {
		if f.Restart != nil {
			add(restart, func(context.Context, time.Duration, *rand.Rand) error { return f.Restart(lasting) })
		}
		if f.Pause != nil {
			add("pause the server", func(ctx context.Context, d time.Duration, _ *rand.Rand) error {
				resume, err := f.Pause(lasting)
				if err != nil {
					return err
				}
				pause(ctx, d)
				resume()
				return nil
			})
		}
		return all
	}
	// Half of the faults are the leader's.
	server := func(ctx context.Context, dice *rand.Rand) int {
		if dice.IntN(2) == 0 {
			if i, err := f.Cluster.Leader(ctx); err == nil && i >= 0 {
				return i
			}
		}
		return dice.IntN(len(f.Cluster.Servers))
	}
	add("kill one server", func(ctx context.Context, d time.Duration, dice *rand.Rand) error {
		s := f.Cluster.Servers[server(ctx, dice)]
		if err := s.Kill(); err != nil {
			return err
		}
		pause(ctx, d)
		return s.Start(lasting)
	})
	add("pause one server", func(ctx context.Context, d time.Duration, dice *rand.Rand) error {
		s := f.Cluster.Servers[server(ctx, dice)]
		if err := s.Pause(); err != nil {
			return err
		}
		pause(ctx, d)
		return s.Resume()
	})
	if f.Cluster.Servers[0].Isolate != nil {
		add("isolate one server", func(ctx context.Context, d time.Duration, dice *rand.Rand) error {
			heal, err := f.Cluster.Servers[server(ctx, dice)].Isolate()
			if err != nil {
				return err
			}
			pause(ctx, d)
			heal()
			return nil
		})
	}
	return all
}
