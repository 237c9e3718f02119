package elect_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/memory"
)

// A disordered backend has somebody else's members in its lines, which have no order,
// until they are taken away.
type disordered struct {
	backend.Backend
	until time.Time
	joins *atomic.Int64
}

func (b disordered) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	return disorderedSession{s, b}, err
}

type disorderedSession struct {
	backend.Session
	b disordered
}

func (s disorderedSession) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	s.b.joins.Add(1)
	return s.Session.Join(ctx, line, value, record)
}

func (s disorderedSession) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	if time.Now().Before(s.b.until) {
		return backend.Place{}, backend.ErrLine
	}
	return s.Session.Ahead(ctx, m)
}

// A stranger's member ends no campaign, and candidates do not come back ever and again
// meanwhile.
func TestCampaignOutlastsALineWithoutOrder(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		joins := new(atomic.Int64)
		b := disordered{client(t, c, "a"), time.Now().Add(time.Minute), joins}
		term, err := elect.New(b, "reports", nil).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n := joins.Load(); n > 70 {
			t.Errorf("it joined %d times within a minute; want a pause of up to two seconds between attempts", n)
		}
		term.Resign(t.Context())
	})
}

// A slow backend is one whose heartbeats are confirmed so late that its deadline is never
// further ahead than a tenth of the session's time.
type slow struct{ backend.Backend }

func (b slow) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	return slowSession{s}, err
}

type slowSession struct{ backend.Session }

func (s slowSession) Deadline() time.Time { return time.Now().Add(s.TTL() / 10) }

// Who stands first and cannot lead says so, and lets others lead.
func TestFirstWithoutADeadlineGivesItsPlaceBack(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithCancel(t.Context())
		events := make(chan trace.Event, 100)
		told := make(chan time.Time, 100) // when it said that it tries again
		late := run(ctx, elect.New(slow{client(t, c, "a")}, "reports", &elect.Options{Trace: func(ev trace.Event) {
			if ev.Kind == trace.Retrying {
				told <- time.Now()
			}
			events <- ev
		}}))
		for ev := range events {
			if ev.Kind == trace.Joined {
				break
			}
		}
		joined := time.Now()
		healthy := run(ctx, elect.New(client(t, c, "b"), "reports", nil))
		began := time.Now()
		select {
		case <-healthy.terms:
		case <-time.After(time.Hour):
			t.Fatal("nobody leads behind a candidate that cannot")
		}
		if took := time.Since(began); took < ttl || took > 2*ttl {
			t.Errorf("nobody led for %v, want about a session time, %v", took, ttl)
		}
		if ev := <-events; ev.Kind != trace.Retrying || !errors.Is(ev.Err, elect.ErrDeadline) {
			t.Errorf("the event is %v, %v; want Retrying because of ErrDeadline", ev.Kind, ev.Err)
		}
		if d := (<-told).Sub(joined); d > 60*time.Millisecond {
			t.Errorf("it has said after %v that it cannot lead", d)
		}
		if len(late.terms) > 0 {
			t.Error("a term began whose deadline had passed")
		}
		time.Sleep(3 * ttl)
		if m := c.Members("reports"); len(m) != 2 {
			t.Errorf("%d stand in line, want the leader and who waits again", len(m))
		}
		cancel()
		<-late.end
		<-healthy.end
	})
}
