//go:build linux

package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/internal/rig/lane"
	"github.com/succession-dev/succession/postgres"
)

// recipes are the groups of rules that are about package recipes.
var recipes = []string{"Lock", "Queue", "Group", "Barrier", "Task", "Value", "Choice"}

// TestConformance runs the rules of the line and of elections on a PostgreSQL of its own, each client behind a proxy of its own. The rules of the recipes are for ./test all, because
// the server needs much time where processes are slow to make; see TestMain.
func TestConformance(t *testing.T) {
	lane.Alone(t)
	h := harness(t, nil)
	for _, r := range conformance.Rules() {
		if !slices.Contains(recipes, r.Group()) {
			h.Only = append(h.Only, r.ID)
		}
	}
	conformance.Run(t, h)
}

func TestConformanceOfRecipes(t *testing.T) {
	lane.All(t)
	lane.Alone(t)
	h := harness(t, nil)
	h.Only = recipes
	conformance.Run(t, h)
}

// All rules, where each commit waits for a standby.
func TestConformanceOfPair(t *testing.T) {
	lane.All(t)
	lane.Alone(t)
	h := harness(t, &coordtest.PostgresOptions{Standby: true, Synchronous: true})
	h.Name = "postgres with a synchronous standby"
	conformance.Run(t, h)
}

// pooled runs the rules that need no fault behind a pooler.
func pooled(t *testing.T, addr string) {
	conformance.Run(t, conformance.Harness{
		Name:      "postgres behind PgBouncer",
		TTL:       ttl,
		Reference: reference(t),
		Slack:     ttl / 2,
		Latency:   4 * time.Second,
		Only:      []string{"L1", "L2", "L3", "L4", "L5", "L6", "L9", "L10", "Pin", "Records", "G1", "G2", "G4", "G8"},
		Open: func(context.Context) (backend.Backend, error) {
			cfg := configOf(t, addr)
			cfg.DialFunc = rig.DialUnlabelled
			return postgres.New(cfg, &postgres.Options{TTL: ttl})
		},
	})
}

// urlOf returns a URL of the server at the address.
func urlOf(addr string) string {
	return "postgres://" + addr + "/postgres?user=postgres&sslmode=disable&connect=" + long.String() + "&ttl=" + long.String()
}

// harness is that of a PostgreSQL whose first server is the primary. o may be nil.
func harness(t *testing.T, o *coordtest.PostgresOptions) conformance.Harness {
	if o == nil {
		o = new(coordtest.PostgresOptions)
	}
	o.Clock = true
	server := coordtest.NewPostgres(t, o)
	addr := server.Addrs()[0]
	operator, admin := rig.OperatorOf(t, urlOf(addr)), configOf(t, addr)
	admin.DialFunc = rig.DialUnlabelled
	h := conformance.Harness{
		Name:      "postgres",
		TTL:       ttl,
		Reference: reference(t),
		Slack:     ttl / 2, // they see a number when they send their own heartbeat, and wait for a twentieth more
		Latency:   4 * time.Second,
		Costs:     map[string]int64{"G5.handover": 2, "G5.rest": 4, "Lock.cost": 2, "Queue.cost": 5, "Queue.put": 1},
		Open: func(context.Context) (backend.Backend, error) {
			c, err := open(t, postgres.Options{TTL: ttl}, server.Addrs()...)
			if err != nil {
				return nil, err
			}
			return c, nil
		},
		Faults: conformance.Faults{
			Process: rig.Process("postgres://" + addr + "/postgres?user=postgres&sslmode=disable&ttl=" + ttl.String()),
			Restart: server.Restart,
			Pause: func(context.Context) (func(), error) {
				return func() {
					if err := server.Resume(); err != nil {
						t.Error(err)
					}
				}, server.Pause()
			},
			Remove:        operator.Remove,
			Drop:          operator.Drop,
			Reset:         func(ctx context.Context) error { return reset(ctx, admin) },
			Rewind:        server.Backup,
			Promote:       func(ctx context.Context) (*conformance.Replica, error) { return pair(ctx, t, false) },
			PromoteBeside: func(ctx context.Context) (*conformance.Replica, error) { return pair(ctx, t, true) },
			Clock: func(_ context.Context, shift time.Duration) (func(), error) {
				return func() {
					if err := server.SetClock(0); err != nil {
						t.Error(err)
					}
				}, server.SetClock(shift)
			},
		},
		Lacks: map[conformance.Fault]string{
			conformance.Compact: "who listens is told that something has changed, and looks: there is no history",
			conformance.Cluster: "there is one server",
		},
		Complete: true,
	}
	rig.Clients(&h.Faults, func(b backend.Backend) []rig.Client { return []rig.Client{rigClient{b.(*client)}} })
	h.Faults.Network(func(b backend.Backend) []*proxy.Proxy { return b.(*client).proxies })
	return h
}

// pair starts a primary and a standby that follows it. If it is synchronous, the primary serves on when the standby takes over.
func pair(ctx context.Context, t *testing.T, synchronous bool) (*conformance.Replica, error) {
	p, err := coordtest.StartPostgres(ctx, &coordtest.PostgresOptions{Standby: true, Synchronous: synchronous})
	if err != nil {
		return nil, err
	}
	admin := configOf(t, p.Addrs()[0])
	admin.DialFunc = rig.DialUnlabelled
	return &conformance.Replica{
		Open: func(context.Context) (backend.Backend, error) {
			return open(t, postgres.Options{TTL: ttl}, p.Addrs()...)
		},
		Lag: func(ctx context.Context) error {
			for {
				n, err := tryRun(ctx, admin, "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn >= pg_current_wal_lsn()")
				if err != nil {
					return err
				}
				if n == "1" {
					return p.Lag()
				}
			}
		},
		Promote: func(ctx context.Context) error {
			if !synchronous {
				p.Servers()[0].Kill()
			}
			return p.Promote(ctx)
		},
		Close: p.Stop,
	}, nil
}

// The faults of writes are what they say.
func TestFaultsOfWrites(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	c := newClient(t, addr, postgres.Options{TTL: 4 * ttl}) // for which it waits for the answer that is lost
	rig.CheckWrites(t, rigClient{c}, c.live(t), newClient(t, addr, postgres.Options{}).live(t), "faults-of-writes", true)
}

// They are so too for what goes over the connection of the session, where each statement is prepared before its first use.
func TestLostAnswerOfPreparedStatement(t *testing.T) {
	t.Parallel()
	addr := sharedPostgres(t).Addrs()[0]
	c := newClient(t, addr, postgres.Options{TTL: 4 * ttl}) // for a quarter of which it waits for the answer
	s, other := c.live(t), newClient(t, addr, postgres.Options{}).live(t)
	for round := range 3 {
		for i := range round {
			join(t, s, fmt.Sprintf("known-%d-%d", round, i), "")
		}
		line := fmt.Sprintf("line-%d", round)
		lost := c.proxies[0].LoseAnswers(c.writes)
		if m := join(t, s, line, ""); memberOf(t, other, line) != m {
			t.Errorf("round %d: %+v does not stand", round, m)
		}
		select {
		case <-lost:
		default:
			t.Errorf("round %d: the answer was not lost", round)
		}
	}
}
