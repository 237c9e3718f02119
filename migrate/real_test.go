package migrate_test

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	_ "github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/elect"
	_ "github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/coordtest"
	"github.com/succession-dev/succession/migrate"
	_ "github.com/succession-dev/succession/zookeeper"
)

// TestRealCoordinators moves an election around all three, by URLs, and back: the
// memory coordinators of the other tests know positions, pins and seals that real ones
// keep in ways of their own.
func TestRealCoordinators(t *testing.T) {
	urls := []string{
		"zookeeper://" + coordtest.NewZooKeeper(t, nil).Addrs()[0] + "/app?session=4s",
		"etcd://" + coordtest.NewEtcd(t, nil).Addrs()[0] + "/app?ttl=4s",
		"consul://" + coordtest.NewConsul(t, nil).Addrs()[0] + "/app?ttl=10s",
	}
	// Each ordered pair once: a tour that ends where it began.
	tour := []int{0, 1, 0, 2, 1, 2, 0}
	name := coordtest.Name(t)
	var newest uint64
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	p := startReal(t, ctx, urls[tour[0]], name, &newest)
	for i := range len(tour) - 1 {
		from, to := urls[tour[i]], urls[tour[i+1]]
		began := time.Now()
		both := "migrate:?from=" + url.QueryEscape(from) + "&to=" + url.QueryEscape(to)
		b, err := backend.Open(ctx, both)
		if err != nil {
			t.Fatal(err)
		}
		op := b.(*migrate.Backend)
		phase := func(step string, f func(context.Context, string) (migrate.Status, error), want migrate.Phase) {
			t.Helper()
			if s, err := f(ctx, name); err != nil || s.Phase != want {
				t.Fatalf("%s from %s to %s: %+v, %v", step, from, to, s, err)
			}
		}
		phase("begin", op.Begin, migrate.Begun)
		next := startReal(t, ctx, both, name, nil)
		p.end(t)
		next.newest = &newest
		term := next.leads(t)
		if i < 2 { // it outlasts both sessions: ZooKeeper keeps the deadlines of the first two of a line alone
			select {
			case <-term.Context().Done():
				t.Fatalf("the term by both ended: %v", context.Cause(term.Context()))
			case <-time.After(9 * time.Second):
			}
		}
		phase("cutover", op.Cutover, migrate.Moved)
		if err := term.Check(); err != nil {
			t.Errorf("the term did not go on over the cutover: %v", err)
		}
		phase("finish", op.Finish, migrate.Moved)
		p = startReal(t, ctx, to, name, nil)
		next.end(t)
		p.newest = &newest
		p.leads(t)
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		t.Logf("%s to %s took %v; the token is %d", from, to, time.Since(began).Round(time.Millisecond), newest)
	}
	p.end(t)
}

// A real is a process that leads when it can, until it is ended.
type real struct {
	stop   context.CancelFunc
	terms  chan *elect.Term
	done   chan error
	newest *uint64
}

func startReal(t *testing.T, ctx context.Context, rawURL, name string, newest *uint64) *real {
	t.Helper()
	b, err := backend.Open(ctx, rawURL)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(ctx)
	p := &real{stop: stop, terms: make(chan *elect.Term, 10), done: make(chan error, 1), newest: newest}
	go func() {
		defer b.Close()
		p.done <- elect.New(b, name, nil).Run(ctx, func(ctx context.Context, term *elect.Term) error {
			p.terms <- term
			<-ctx.Done()
			return nil
		})
	}()
	if newest != nil {
		p.leads(t)
	}
	return p
}

func (p *real) leads(t *testing.T) *elect.Term {
	t.Helper()
	select {
	case term := <-p.terms:
		if term.Token() <= *p.newest {
			t.Errorf("the token is %d after %d", term.Token(), *p.newest)
		}
		*p.newest = term.Token()
		return term
	case err := <-p.done:
		t.Fatalf("Run returned %v", err)
	case <-time.After(time.Minute):
		t.Fatal("does not lead after a minute")
	}
	return nil
}

func (p *real) end(t *testing.T) {
	t.Helper()
	p.stop()
	select {
	case <-p.done:
	case <-time.After(time.Minute):
		t.Fatal("Run has not returned after a minute")
	}
}
