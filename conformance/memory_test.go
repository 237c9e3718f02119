package conformance_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/conformance/internal/broken"
	"github.com/succession-dev/succession/memory"
)

// TestConformance runs every rule on package memory: in virtual time, each on a
// coordinator of its own.
func TestConformance(t *testing.T) {
	h := memoryHarness(plain)
	h.Complete = true
	h.Wrap = func(t *testing.T, rule func(*testing.T, conformance.Harness)) {
		synctest.Test(t, func(t *testing.T) {
			h := memoryHarness(plain)
			h.Costs = memoryCosts
			rule(t, h)
		})
	}
	conformance.Run(t, h)
}

// Every rule also holds where each client reads from a server that lags behind: so no rule takes what it
// reads for what is so now, unless the client has heard of it or has called Refresh.
func TestBehind(t *testing.T) {
	for _, lag := range []time.Duration{5 * time.Millisecond, 500 * time.Millisecond} {
		behind := func() conformance.Harness {
			return memoryHarness(func(b backend.Backend) backend.Backend {
				of(b).Lag(lag)
				return b
			})
		}
		t.Run(lag.String(), func(t *testing.T) {
			h := behind()
			h.Complete = true
			h.Wrap = func(t *testing.T, rule func(*testing.T, conformance.Harness)) {
				synctest.Test(t, func(t *testing.T) {
					h := behind()
					h.Costs = memoryCosts
					rule(t, h)
				})
			}
			conformance.Run(t, h)
		})
	}
}

// memoryCosts are what calls cost on package memory, the watch of the term included: it may come late for a lock.
var memoryCosts = map[string]int64{"G5.handover": 1, "G5.rest": 3, "Lock.cost": 3, "Queue.cost": 5, "Queue.put": 1}

// memoryHarness is a harness on a new coordinator whose clients are wrapped.
func memoryHarness(wrap func(backend.Backend) backend.Backend) conformance.Harness {
	return harnessOf(memory.New(&memory.Options{TTL: ttl, Slack: slack}), wrap)
}

const ttl, slack = 10 * time.Second, 3 * time.Second

// of returns the client of package memory inside b.
func of(b backend.Backend) *memory.Backend {
	for {
		w, ok := b.(interface{ Unwrap() backend.Backend })
		if !ok {
			return b.(*memory.Backend)
		}
		b = w.Unwrap()
	}
}

// writes are the calls that change something.
var writes = []memory.Op{
	memory.OpJoin, memory.OpClaim, memory.OpLeave, memory.OpPin, memory.OpAppend, memory.OpRemove, memory.OpPut, memory.OpDelete,
}

func harnessOf(c *memory.Coordinator, wrap func(backend.Backend) backend.Backend) conformance.Harness {
	var mu sync.Mutex
	var clients []backend.Backend
	disconnected := func(all ...backend.Backend) {
		for _, b := range all {
			if w, ok := b.(*broken.Backend); ok {
				w.Disconnect()
			}
		}
	}
	return conformance.Harness{
		Name:  "memory",
		TTL:   ttl,
		Slack: slack,
		Open: func(context.Context) (backend.Backend, error) {
			mu.Lock()
			defer mu.Unlock()
			name := fmt.Sprint(len(clients) + 1)
			anew := func() backend.Backend {
				b := c.Client(name)
				b.Delay(time.Millisecond, time.Millisecond)
				return b
			}
			b := wrap(anew())
			if w, ok := b.(*broken.Backend); ok {
				w.Anew = anew
			}
			clients = append(clients, b)
			return b, nil
		},
		Lacks: map[conformance.Fault]string{
			conformance.Process:       "it lives in one process",
			conformance.Compact:       "no client watches from an earlier point of its log",
			conformance.Clock:         "it has no wall clock",
			conformance.Cluster:       "it is one server",
			conformance.Promote:       "there is no standby",
			conformance.PromoteBeside: "there is no standby",
		},
		Faults: conformance.Faults{
			Expire: func(_ context.Context, b backend.Backend) error {
				if w, ok := b.(*broken.Backend); ok {
					w.Expire()
				}
				of(b).Expire()
				return nil
			},
			Cut: func(b backend.Backend) func() {
				of(b).Cut()
				return of(b).Heal
			},
			Deafen: func(b backend.Backend) func() {
				of(b).CutAnswers()
				return of(b).Heal
			},
			Mute: func(b backend.Backend) func() {
				of(b).CutRequests()
				return of(b).Heal
			},
			Sever: func(b backend.Backend) func() {
				of(b).Sever()
				disconnected(b)
				return of(b).Heal
			},
			Hide: func(b backend.Backend) func() {
				of(b).Hide()
				disconnected(b)
				return of(b).Heal
			},
			Rewind: func(context.Context) (func(context.Context) error, error) {
				restore := c.Snapshot()
				return func(context.Context) error { restore(); return nil }, nil
			},
			LoseAnswer: func(b backend.Backend) {
				if w, ok := b.(*broken.Backend); ok {
					w.LoseAnswer()
				}
				of(b).LoseAnswer(writes...)
			},
			HoldBack: func(b backend.Backend, skip int) (held func() bool, release func()) {
				held, release = of(b).HoldBack(skip, writes...)
				if w, ok := b.(*broken.Backend); ok {
					return held, w.HoldBack(skip, release)
				}
				return held, release
			},
			Kill: func(b backend.Backend) {
				if w, ok := b.(*broken.Backend); !ok || !w.Kill() {
					of(b).Kill()
				}
			},
			Restart: func(context.Context) error {
				c.Restart()
				mu.Lock()
				all := slices.Clone(clients)
				mu.Unlock()
				disconnected(all...)
				return nil
			},
			Pause: func(context.Context) (func(), error) {
				c.Pause()
				return c.Resume, nil
			},
			Remove: func(_ context.Context, m backend.Member) error {
				if !c.Remove(m.Line, m.Key) {
					return fmt.Errorf("%s does not stand in %s", m.Key, m.Line)
				}
				return nil
			},
			Drop:     func(_ context.Context, line string) error { c.Drop(line); return nil },
			Reset:    func(context.Context) error { c.Reset(); return nil },
			Requests: func(b backend.Backend) int64 { return int64(c.Requests().Of(of(b).Name())) },
			Bytes:    func(b backend.Backend) int64 { return c.Bytes(of(b).Name()) },
		},
	}
}
