package elect_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
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

func (s disorderedSession) Join(ctx context.Context, line, value string) (backend.Member, error) {
	s.b.joins.Add(1)
	return s.Session.Join(ctx, line, value)
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
