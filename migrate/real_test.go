package migrate_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	_ "github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/elect"
	_ "github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/lane"
	_ "github.com/succession-dev/succession/local"
	"github.com/succession-dev/succession/migrate"
	_ "github.com/succession-dev/succession/zookeeper"
)

// tours are all pairs of coordinators. An election goes from one to the other, back, and
// there again; its first term by both outlasts the sessions if it lasts, as ZooKeeper keeps
// the deadlines of the first two of a line alone.
var tours = []struct {
	a, b  string
	lasts bool
}{
	{"zookeeper", "etcd", true},
	{"consul", "zookeeper", true},
	{"etcd", "consul", false},
	{"local", "zookeeper", true},
	{"etcd", "local", false},
	{"consul", "local", false},
	{"local", "local2", false},
}

// TestRealCoordinators moves elections between coordinators, by URLs: the memory
// coordinators of the other tests know positions, pins and seals that real ones keep in
// ways of their own.
func TestRealCoordinators(t *testing.T) {
	lane.Real(t)
	urls := map[string]string{
		"zookeeper": "zookeeper://" + coordtest.NewZooKeeper(t, nil).Addrs()[0] + "/app?ttl=4s",
		"etcd":      "etcd://" + coordtest.NewEtcd(t, nil).Addrs()[0] + "/app?ttl=4s",
		"consul":    "consul://" + coordtest.NewConsul(t, nil).Addrs()[0] + "/app?ttl=10s",
		"local":     "local:" + t.TempDir(),
		"local2":    "local:" + t.TempDir(),
	}
	t.Run("tours", func(t *testing.T) {
		for _, tt := range tours {
			t.Run(tt.a+"-"+tt.b, func(t *testing.T) {
				t.Parallel()
				tour(t, urls, []string{tt.a, tt.b, tt.a, tt.b}, tt.lasts)
			})
		}
	})
	t.Run("abort", func(t *testing.T) {
		for _, to := range []string{"zookeeper", "etcd", "consul", "local"} {
			t.Run(to, func(t *testing.T) {
				t.Parallel()
				abortWhileTwoWait(t, urls["local2"], strings.Replace(urls[to], "ttl=4s", "ttl=20s", 1))
			})
		}
	})
}

// abortWhileTwoWait aborts a migration while two processes with the new coordinator alone wait behind the gate.
func abortWhileTwoWait(t *testing.T, from, to string) {
	name := coordtest.Name(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b, err := succession.Connect(ctx, "migrate:?from="+url.QueryEscape(from)+"&to="+url.QueryEscape(to))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	op := b.(*migrate.Backend)
	if s, err := op.Begin(ctx, name); err != nil || s.Phase != migrate.Begun {
		t.Fatalf("begin: %+v, %v", s, err)
	}
	there, err := succession.Connect(ctx, to)
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	s, err := there.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var early []*real
	for i := range 2 {
		early = append(early, startReal(t, ctx, to, name, nil))
		l, err := s.Line(ctx, name)
		for err == nil && len(l.Members) < 2+i {
			l, err = s.WatchLine(ctx, name, l)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if s, err := op.Abort(ctx, name); err != nil || s.Phase != migrate.Aborted {
		t.Errorf("abort: %+v, %v", s, err)
	}
	for _, p := range early {
		select {
		case err := <-p.done:
			if !errors.Is(err, backend.ErrSealed) {
				t.Errorf("a process behind the gate ended with %v; want ErrSealed", err)
			}
		case <-ctx.Done():
			t.Error("a process behind the gate is not told of the abort")
		}
	}
}

// tour moves an election from stop to stop.
func tour(t *testing.T, urls map[string]string, stops []string, lasts bool) {
	name := coordtest.Name(t)
	var newest uint64
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	watch := calm.Start(t)
	unjudged := func(format string, args ...any) { // skips the rest if a session may have ended because the machine is too busy
		if watch.NotJudged(time.Second, format, args...) {
			t.SkipNow()
		}
	}
	p := startReal(t, ctx, urls[stops[0]], name, &newest)
	for i := range len(stops) - 1 {
		from, to := urls[stops[i]], urls[stops[i+1]]
		began := time.Now()
		both := "migrate:?from=" + url.QueryEscape(from) + "&to=" + url.QueryEscape(to)
		b, err := succession.Connect(ctx, both)
		if err != nil {
			t.Fatal(err)
		}
		op := b.(*migrate.Backend)
		phase := func(step string, f func(context.Context, string) (migrate.Status, error), want migrate.Phase, who string) {
			t.Helper()
			s, err := f(ctx, name)
			if err == nil && s.Phase == want && standing(s) != who {
				unjudged("%s from %s to %s: %+v", step, from, to, s)
			}
			if err != nil || s.Phase != want || standing(s) != who {
				t.Fatalf("%s from %s to %s: %+v, %v; want %s, %q", step, from, to, s, err, want, who)
			}
		}
		if err := op.Check(ctx, name); err != nil {
			t.Fatalf("check from %s to %s: %v", from, to, err)
		}
		phase("begin", op.Begin, migrate.Begun, "process:old |")
		next := startReal(t, ctx, both, name, nil)
		p.end(t)
		next.newest = &newest
		term := next.leads(t)
		phase("status", op.Status, migrate.Begun, "process:both | process:both")
		if lasts && i == 0 {
			select {
			case <-term.Context().Done():
				unjudged("the term by both ended: %v", context.Cause(term.Context()))
				t.Fatalf("the term by both ended: %v", context.Cause(term.Context()))
			case <-time.After(9 * time.Second):
			}
		}
		phase("cutover", op.Cutover, migrate.Moved, "| process:both")
		if err := term.Check(); err != nil {
			unjudged("the term did not go on over the cutover: %v", err)
			t.Errorf("the term did not go on over the cutover: %v", err)
		}
		phase("finish", op.Finish, migrate.Moved, "| process:both")
		p = startReal(t, ctx, to, name, nil)
		next.end(t)
		p.newest = &newest
		p.leads(t)
		phase("status", op.Status, migrate.Moved, "| process:new")
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		t.Logf("%s to %s took %v; the token is %d", stops[i], stops[i+1], time.Since(began).Round(time.Millisecond), newest)
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
	b, err := succession.Connect(ctx, rawURL)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(ctx)
	t.Cleanup(stop)
	p := &real{stop: stop, terms: make(chan *elect.Term, 10), done: make(chan error, 1), newest: newest}
	go func() {
		defer b.Close()
		p.done <- elect.New(b, name, &elect.Options{ID: "process"}).Run(ctx, func(ctx context.Context, term *elect.Term) error {
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
