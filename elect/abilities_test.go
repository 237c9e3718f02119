package elect_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/memory"
)

// A bare backend keeps no records and cannot pin.
type bare struct {
	backend.Backend
	watches *atomic.Int64 // how often it was asked to watch a record
}

func (b bare) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	if err != nil {
		return nil, err
	}
	return bareSession{noRecords: noRecords{watches: b.watches}, rest: rest{deep{s}}}, nil
}

type bareSession struct {
	kit.NoShares
	kit.NoPins
	kit.NoItems
	noRecords
	rest
}

// Of methods with the same name the one that is embedded less deeply counts.
type (
	rest      struct{ deep }
	deep      struct{ backend.Session }
	noRecords struct {
		kit.NoRecords
		watches *atomic.Int64
	}
)

func (r noRecords) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	r.watches.Add(1)
	return r.NoRecords.Watch(ctx, name, after)
}

// Without records an election works, but for what is kept in records. Nothing asks for
// them over and over.
func TestElectionWithoutRecords(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		watches := make(map[string]*atomic.Int64)
		election := func(name string) *elect.Election {
			watches[name] = new(atomic.Int64)
			return elect.New(bare{client(t, c, name), watches[name]}, "reports", &elect.Options{ID: name})
		}
		seen := make(chan elect.State, 20)
		observer := election("observer")
		go func() {
			for l, err := range observer.Observe(ctx) {
				if err != nil {
					close(seen)
					return
				}
				seen <- l
			}
		}()
		sees := func(id string) {
			t.Helper()
			synctest.Wait() // all that has happened has been seen
			if l := <-seen; l.Leader.ID != id || len(seen) != 0 {
				t.Errorf("the observer saw %+v and %d more, want %q", l, len(seen), id)
			}
		}
		sees("")
		a := election("a")
		first, err := a.Campaign(ctx)
		if err != nil {
			t.Fatal(err)
		}
		sees("a")
		b := run(ctx, election("b"))
		time.Sleep(3 * ttl) // time for many a second look
		synctest.Wait()
		if err := first.Check(); err != nil || len(b.terms) != 0 || len(seen) != 0 {
			t.Errorf("after some time: Check says %v, %d lead besides, and the observer saw %d changes", err, len(b.terms), len(seen))
		}
		if n := watches["a"].Load(); n > 3 {
			t.Errorf("the leader has asked %d times in three session times to watch a record, want one in each", n)
		}

		_, put := first.Put(ctx, "result", nil, backend.Any)
		_, get := first.Get(ctx, "result")
		op := operate.New(bare{client(t, c, "operator"), new(atomic.Int64)}, "reports", "")
		_, ask := op.AskToResign(ctx, nil)
		for what, err := range map[string]error{
			"Acknowledge": first.Acknowledge(ctx), "Put": put, "Get": get, "AskToResign": ask, "RaiseFence": op.RaiseFence(ctx, 1000),
		} {
			if !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%s: %v, want %v", what, err, errors.ErrUnsupported)
			}
		}
		if err := first.Check(); err != nil {
			t.Errorf("what is not supported has ended the term: %v", err)
		}

		if err := first.Resign(ctx); err != nil {
			t.Fatal(err)
		}
		if second := <-b.terms; second.Token() <= first.Token() {
			t.Errorf("the later token is %d, after %d", second.Token(), first.Token())
		}
		sees("b")
		c.Remove("reports", c.Members("reports")[0].Key) // an operator's removal ends a term as ever
		third := <-b.terms
		if third.Check() != nil {
			t.Errorf("the candidate that stands in line again does not lead: %v", third.Check())
		}
		b.stop <- nil
		if err := <-b.end; err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
}

// Where a join tells the place, an empty line is won by that alone, unless a fence is kept.
func TestEmptyLineIsWonByOneRequest(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		e := elect.New(client(t, c, "a"), "reports", nil)
		win := func() (term *elect.Term, n memory.Counts) {
			before := c.Requests()
			term, err := e.Campaign(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			n = c.Requests().Since(before)
			if err := term.Resign(t.Context()); err != nil {
				t.Error(err)
			}
			return term, n
		}
		if _, n := win(); n.Of("a", memory.OpJoin) != 1 || n.Of("a", memory.OpAhead, memory.OpGet) != 0 {
			t.Errorf("it sent %v", n)
		}
		if err := operate.New(client(t, c, "operator"), "reports", "").RaiseFence(t.Context(), 1000); err != nil {
			t.Fatal(err)
		}
		if term, n := win(); n.Of("a", memory.OpGet) == 0 || term.Token() <= 1000 {
			t.Errorf("with a fence of 1000 the token is %d; it sent %v", term.Token(), n)
		}
	})
}
