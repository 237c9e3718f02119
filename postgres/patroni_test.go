//go:build linux

package postgres_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/lane"
	"github.com/succession-dev/succession/postgres"
)

// Patroni has the standby take over in each of its ways, twice, so that both servers lose the lead. Each time the next one leads after
// the one before has stopped, and with a larger token.
func TestPatroni(t *testing.T) {
	lane.All(t)
	t.Parallel()
	p := coordtest.NewPatroni(t)
	o := postgres.Options{TTL: 3 * time.Second, ConnectTimeout: 10 * time.Second}
	switchover := func(*coordtest.Server) (func() error, error) {
		return func() error { return nil }, p.Switchover(t.Context())
	}
	machine := func(s *coordtest.Server) (func() error, error) { s.Kill(); return s.Start, nil }
	s, was, _ := lead(t, hosts(t, o, p.Addrs()...), "e")
	for _, fault := range []struct {
		name   string
		happen func(primary *coordtest.Server) (mend func() error, err error)
	}{
		{"switchover", switchover}, {"switchover back", switchover},
		{"the machine dies", machine}, {"the other machine dies", machine},
		{"Patroni hangs, and the old primary serves on", p.Hang}, {"the other Patroni hangs", p.Hang},
	} {
		primary, err := p.Leader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		deposed := s
		var stopped atomic.Pointer[time.Time]
		go func() {
			<-deposed.Done()
			now := time.Now()
			stopped.Store(&now)
		}()
		begun := time.Now()
		mend, err := fault.happen(primary)
		if err != nil {
			t.Fatalf("%s: %v", fault.name, err)
		}
		before := was.Token
		var at time.Time
		s, was, at = lead(t, hosts(t, o, p.Addrs()...), "e")
		end := deposed.Deadline()
		if told := stopped.Load(); told != nil && told.Before(end) {
			end = *told
		}
		if at.Before(end) {
			t.Errorf("%s: the next one led after %v, and the one before until %v", fault.name, at.Sub(begun), end.Sub(begun))
		}
		if was.Token <= before {
			t.Errorf("%s: the token %d follows %d", fault.name, was.Token, before)
		}
		t.Logf("%s: the leader's term was over after %v, and the next one led after %v", fault.name, end.Sub(begun).Round(time.Millisecond), at.Sub(begun).Round(time.Millisecond))
		if err := mend(); err != nil {
			t.Fatal(err)
		}
		if err := primary.Ready(within(t, time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
}
