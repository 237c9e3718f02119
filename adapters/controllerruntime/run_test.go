package controllerruntime_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/go-logr/logr"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/local"
	"github.com/succession-dev/succession/memory"

	"github.com/succession-dev/succession/adapters/controllerruntime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ttl = 10 * time.Second

// options are those of a manager that needs no API server: it has no informers.
func options() manager.Options {
	return manager.Options{
		Logger:  logr.Discard(),
		Metrics: server.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return meta.NewDefaultRESTMapper(nil), nil
		},
	}
}

// nowhere is the address of an API server that nobody is at.
var nowhere = &rest.Config{Host: "http://127.0.0.1:1"}

// A journal is what happens to the runnables, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
	news  chan string
}

func newJournal() *journal { return &journal{news: make(chan string, 100)} }

func (j *journal) note(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
	j.news <- j.lines[len(j.lines)-1]
}

func (j *journal) check(t *testing.T, want ...string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.Equal(j.lines, want) {
		t.Errorf("what happened was %q, want %q", j.lines, want)
	}
}

// An operator is a process with a manager. Its manager has a controller, which is idle, and a
// runnable that needs linger to end.
type operator struct {
	stop context.CancelFunc
	end  chan error
}

func start(t *testing.T, j *journal, b backend.Backend, id string, linger time.Duration) *operator {
	ctx, stop := context.WithCancel(context.Background())
	o := &operator{stop, make(chan error, 1)}
	go func() {
		o.end <- controllerruntime.Run(ctx, elect.New(b, "operator", &elect.Options{ID: id, Margin: 2 * time.Second}), nowhere, options(),
			func(_ context.Context, m manager.Manager, term *elect.Term) error {
				nothing := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
				if _, err := controller.New("idle", m, controller.Options{Reconciler: nothing}); err != nil {
					return err
				}
				return m.Add(manager.RunnableFunc(func(ctx context.Context) error {
					j.note("%s begins", id)
					<-ctx.Done()
					if term.Check() == nil {
						t.Errorf("the context of %s has ended, and its term has not: %v", id, context.Cause(ctx))
					}
					time.Sleep(linger)
					j.note("%s ends", id)
					return nil
				}))
			})
	}()
	return o
}

// One of two managers runs its runnables. When it ends, or its process loses leadership, the other's
// begin, and not before those of the first have ended.
func TestHandover(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(t *testing.T, c *memory.Coordinator, a *memory.Backend, o *operator)
		back bool // the first stands in line again
	}{
		{"the process ends", func(_ *testing.T, _ *memory.Coordinator, _ *memory.Backend, o *operator) { o.stop() }, false},
		{"somebody asks for it", func(t *testing.T, c *memory.Coordinator, _ *memory.Backend, _ *operator) {
			b := c.Client("human")
			defer b.Close()
			if _, err := operate.New(b, "operator", "").AskToResign(t.Context(), nil); err != nil {
				t.Error(err)
			}
		}, true},
		{"the process is cut off", func(_ *testing.T, _ *memory.Coordinator, a *memory.Backend, _ *operator) {
			a.Cut()
			time.AfterFunc(2*ttl, a.Heal)
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, j := memory.New(&memory.Options{TTL: ttl}), newJournal()
				a, b := c.Client("a"), c.Client("b")
				defer a.Close()
				defer b.Close()
				first := start(t, j, a, "a", time.Second)
				synctest.Wait()
				second := start(t, j, b, "b", time.Second)
				time.Sleep(3 * ttl)
				j.check(t, "a begins")
				tt.end(t, c, a, first)
				time.Sleep(3 * ttl)
				j.check(t, "a begins", "a ends", "b begins")
				second.stop()
				if err := <-second.end; err != nil {
					t.Errorf("Run of the second: %v", err)
				}
				time.Sleep(ttl)
				if want := []string{"a begins", "a ends", "b begins", "b ends"}; tt.back {
					j.check(t, append(want, "a begins")...)
				} else {
					j.check(t, want...)
				}
				first.stop()
				if err := <-first.end; err != nil {
					t.Errorf("Run of the first: %v", err)
				}
			})
		})
	}
}

// The same on the kernel of this machine.
func TestLocal(t *testing.T) {
	j, dir := newJournal(), t.TempDir()
	begin := func(id string) *operator {
		b, err := local.New(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		return start(t, j, b, id, 10*time.Millisecond)
	}
	a := begin("a")
	<-j.news
	b := begin("b")
	a.stop()
	<-a.end
	<-j.news
	<-j.news
	j.check(t, "a begins", "a ends", "b begins")
	b.stop()
	<-b.end
}

// What cannot be is refused, and what fails ends Run.
func TestRunEnds(t *testing.T) {
	broken := errors.New("broken")
	fails := func(m manager.Manager) error {
		return m.Add(manager.RunnableFunc(func(context.Context) error { return broken }))
	}
	elects := options()
	elects.LeaderElection = true
	for _, tt := range []struct {
		name  string
		o     manager.Options
		setup controllerruntime.Setup
		want  string
	}{
		{"no function", options(), nil, "no function"},
		{"two elections", elects, func(context.Context, manager.Manager, *elect.Term) error { return nil }, "LeaderElection"},
		{"setup fails", options(), func(context.Context, manager.Manager, *elect.Term) error { return broken }, "broken"},
		{"a runnable fails", options(), func(_ context.Context, m manager.Manager, _ *elect.Term) error { return fails(m) }, "broken"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := memory.New(nil)
				b := c.Client("a")
				defer b.Close()
				err := controllerruntime.Run(t.Context(), elect.New(b, "operator", nil), nowhere, tt.o, tt.setup)
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("Run returned %v, want %q in it", err, tt.want)
				}
				if m := c.Members("operator"); len(m) > 0 {
					t.Errorf("%v stands in line", m)
				}
			})
		})
	}
}

// Values of the context that the options give reach the runnables.
func TestBaseContext(t *testing.T) {
	type key struct{}
	b := memory.New(nil).Client("a")
	defer b.Close()
	o := options()
	o.BaseContext = func() context.Context { return context.WithValue(context.Background(), key{}, "kept") }
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	err := controllerruntime.Run(ctx, elect.New(b, "operator", nil), nowhere, o, func(_ context.Context, m manager.Manager, _ *elect.Term) error {
		return m.Add(manager.RunnableFunc(func(ctx context.Context) error {
			if ctx.Value(key{}) != "kept" {
				t.Error("the runnable does not see the value")
			}
			stop()
			<-ctx.Done()
			return nil
		}))
	})
	if err != nil {
		t.Errorf("Run: %v", err)
	}
}
