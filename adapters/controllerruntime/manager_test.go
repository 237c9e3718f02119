//go:build linux

package controllerruntime_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/lane"

	"github.com/succession-dev/succession/adapters/controllerruntime"
)

// electing are the options of an operator as kubebuilder makes it.
func electing(id string) manager.Options {
	lasts, renew, retry := besideTTL, besideRenew, besideRetry
	no := true
	o := manager.Options{
		Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: id, LeaderElectionNamespace: "default", LeaderElectionReleaseOnCancel: true,
		LeaseDuration: &lasts, RenewDeadline: &renew, RetryPeriod: &retry,
	}
	o.Controller.SkipNameValidation = &no // all are in one process
	return o
}

// begin starts a manager that create makes, with a controller, a runnable that needs the lead, and one that does not.
func begin(t *testing.T, j *journal, id string, config *rest.Config, o manager.Options, create func(*rest.Config, manager.Options) (manager.Manager, error)) *operator {
	t.Helper()
	m, err := create(config, o)
	if err != nil {
		t.Fatal(err)
	}
	nothing := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
	if _, err := controller.New("idle", m, controller.Options{Reconciler: nothing}); err != nil {
		t.Fatal(err)
	}
	if err := m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		select {
		case <-m.Elected():
		case <-time.After(besideAgain): // client-go's closes it when all runnables have been started
			t.Errorf("%s works, and is not elected", id)
		}
		j.note("%s begins", id)
		<-ctx.Done()
		j.note("%s ends", id)
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	if err := m.Add(always{func() { j.note("%s is there", id) }}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	x := &operator{stop, make(chan error, 1)}
	go func() { x.end <- m.Start(ctx) }()
	return x
}

func ours(config *rest.Config, o manager.Options) (manager.Manager, error) {
	return controllerruntime.NewManager(config, o, nil)
}

// want awaits that these happen, one after the other, and nothing in between.
func (j *journal) want(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		select {
		case now := <-j.news:
			if now != line {
				t.Fatalf("what happened was %q, want %q", now, line)
			}
		case <-time.After(besideAgain):
			t.Fatalf("no %q", line)
		}
	}
}

// always is a runnable that needs no lead.
type always struct{ f func() }

func (a always) Start(ctx context.Context) error {
	a.f()
	<-ctx.Done()
	return nil
}

func (always) NeedLeaderElection() bool { return false }

// An operator goes from the election of controller-runtime to NewManager by a rolling update, and back: in each moment one of them works, in
// each process runs what needs no lead, and nobody has to wait until a Lease runs out.
func TestNewManager(t *testing.T) {
	lane.All(t)
	k := besideServer(t)
	c := &contest{T: t, k: k}
	config := c.config(k.Addrs()[0])
	j := newJournal()
	want := func(lines ...string) { t.Helper(); j.want(t, lines...) }
	end := func(x *operator) {
		t.Helper()
		x.stop()
		if err := <-x.end; err != nil && !strings.Contains(err.Error(), "leader election lost") { // client-go's says so when it has given the lead up
			t.Error(err)
		}
	}
	const id = "80807133.example.com"
	old := begin(t, j, "old", config, electing(id), manager.New)
	want("old is there", "old begins")
	a := begin(t, j, "a", config, electing(id), ours)
	want("a is there")
	end(old)
	want("old ends", "a begins")
	b := begin(t, j, "b", config, electing(id), ours)
	want("b is there")
	begun := time.Now()
	end(a)
	want("a ends", "b begins")
	t.Logf("from the end of one to the work of the next: %v", time.Since(begun))
	old = begin(t, j, "old", config, electing(id), manager.New)
	want("old is there")
	end(b)
	want("b ends", "old begins")
	end(old)
	want("old ends")
}

// A process stands in line only when its caches are filled, as with client-go's election: until then another one leads.
func TestNewManagerFillsCachesFirst(t *testing.T) {
	lane.All(t)
	k := besideServer(t)
	c := &contest{T: t, k: k}
	config := c.config(k.Addrs()[0])
	j := newJournal()
	filled := make(chan struct{})
	a := begin(t, j, "a", config, electing("caches"), func(config *rest.Config, o manager.Options) (manager.Manager, error) {
		m, err := ours(config, o)
		if err != nil {
			return nil, err
		}
		return m, m.Add(slowCache{filled: filled})
	})
	b := begin(t, j, "b", config, electing("caches"), ours)
	j.want(t, "b is there", "b begins")
	close(filled)
	j.want(t, "a is there")
	b.stop()
	j.want(t, "b ends", "a begins")
	a.stop()
	j.want(t, "a ends")
	for _, x := range []*operator{a, b} {
		if err := <-x.end; err != nil {
			t.Error(err)
		}
	}
}

// slowCache is a cache that is filled later.
type slowCache struct {
	cache.Cache
	filled chan struct{}
}

func (s slowCache) GetCache() cache.Cache { return s }

func (slowCache) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (s slowCache) WaitForCacheSync(ctx context.Context) bool {
	select {
	case <-s.filled:
		return true
	case <-ctx.Done():
		return false
	}
}

// A manager that has lost the lead stops, and says so.
func TestNewManagerLoses(t *testing.T) {
	lane.All(t)
	k := besideServer(t)
	c := &contest{T: t, k: k}
	config := c.config(k.Addrs()[0])
	j := newJournal()
	x := begin(t, j, "a", config, electing("lost"), ours)
	<-j.news
	<-j.news
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	req, err := http.NewRequest(http.MethodPatch, config.Host+leasesPath+"/lost", strings.NewReader(`{"spec":{"holderIdentity":"another","leaseTransitions":7}}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/merge-patch+json")
	resp, err := client.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
	if err := <-x.end; !errors.Is(err, controllerruntime.ErrLost) {
		t.Errorf("Start returned %v, want ErrLost", err)
	}
	x.stop()
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) { // nothing is left of it, also if the process does not end
		resp, err := client.Get(config.Host + leasesPath)
		if err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err == nil && !strings.Contains(string(all), `"session-`) {
			return
		}
		if time.Since(begun) > besideAgain {
			t.Fatalf("what is left: %s (%v)", all, err)
		}
	}
}

// A leader that is not ready any more hands over, and nobody leads before its runnables have ended, so Start waits for them.
func TestNewManagerNotReady(t *testing.T) {
	lane.All(t)
	k := besideServer(t)
	c := &contest{T: t, k: k}
	config := c.config(k.Addrs()[0])
	j := newJournal()
	var broken atomic.Bool
	var a *operator
	begun := make(chan struct{})
	a = begin(t, j, "a", config, electing("ready"), func(config *rest.Config, o manager.Options) (manager.Manager, error) {
		m, err := controllerruntime.NewManager(config, o, &elect.Options{Ready: func(context.Context) error {
			if broken.Load() {
				return errors.New("the disk is full")
			}
			return nil
		}})
		if err != nil {
			return nil, err
		}
		return m, m.Add(manager.RunnableFunc(func(ctx context.Context) error {
			<-ctx.Done()
			<-begun
			time.Sleep(500 * time.Millisecond) // it tidies up
			if len(a.end) > 0 {
				t.Error("Start has not waited for a runnable")
			}
			j.note("a has tidied up")
			return nil
		}))
	})
	close(begun)
	j.want(t, "a is there", "a begins")
	b := begin(t, j, "b", config, electing("ready"), ours)
	j.want(t, "b is there")
	broken.Store(true)
	j.want(t, "a ends", "a has tidied up", "b begins")
	if err := <-a.end; !errors.Is(err, controllerruntime.ErrLost) || !errors.Is(err, elect.ErrNotReady) {
		t.Errorf("Start returned %v, want ErrLost because it is not ready", err)
	}
	b.stop()
	j.want(t, "b ends")
	if err := <-b.end; err != nil {
		t.Error(err)
	}
}

// If the session ends while Start waits for a runnable that hangs, or another one has the lead, Start returns.
func TestNewManagerLosesTheLineAfterNotReady(t *testing.T) {
	lane.All(t)
	k := besideServer(t)
	t.Run("cut off", func(t *testing.T) {
		losesTheLine(t, k, "hangs", func(p *proxy.Proxy, _ *rest.Config) { p.Cut() })
	})
	t.Run("taken", func(t *testing.T) { // by one who heeds nothing; its session lives on
		losesTheLine(t, k, "hangs-too", func(_ *proxy.Proxy, config *rest.Config) {
			client, err := coordinationv1.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			taken := []byte(`{"spec":{"holderIdentity":"taker","leaseDurationSeconds":3,"renewTime":"` + time.Now().UTC().Format("2006-01-02T15:04:05.000000Z") + `"}}`)
			if _, err := client.Leases("default").Patch(t.Context(), "hangs-too", types.MergePatchType, taken, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		})
	})
}

func losesTheLine(t *testing.T, k *coordtest.Kubernetes, id string, lose func(*proxy.Proxy, *rest.Config)) {
	c := &contest{T: t, k: k}
	p, err := coordtest.StartProxy(k.Addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	j := newJournal()
	var broken atomic.Bool
	hangs, hung := make(chan struct{}), make(chan struct{})
	a := begin(t, j, "a", c.config(p.Addr()), electing(id), func(config *rest.Config, o manager.Options) (manager.Manager, error) {
		forever := time.Duration(-1)
		o.GracefulShutdownTimeout = &forever
		m, err := controllerruntime.NewManager(config, o, &elect.Options{Ready: func(context.Context) error {
			if broken.Load() {
				return errors.New("the disk is full")
			}
			return nil
		}})
		if err != nil {
			return nil, err
		}
		return m, m.Add(manager.RunnableFunc(func(context.Context) error {
			<-hangs
			close(hung)
			return nil
		}))
	})
	ended := make(chan error, 1)
	go func() {
		err := <-a.end
		j.note("a has returned")
		ended <- err
	}()
	j.want(t, "a is there", "a begins")
	b := begin(t, j, "b", c.config(k.Addrs()[0]), electing(id), ours)
	j.want(t, "b is there")
	broken.Store(true)
	j.want(t, "a ends")
	select {
	case now := <-j.news:
		t.Fatalf("what happened was %q; the session is renewed, so Start waits", now)
	case <-time.After(besideTTL + time.Second):
	}
	lose(p, c.config(k.Addrs()[0]))
	j.want(t, "a has returned", "b begins")
	if err := <-ended; !errors.Is(err, controllerruntime.ErrLost) || !errors.Is(err, elect.ErrNotReady) {
		t.Errorf("Start returned %v, want ErrLost because it is not ready", err)
	}
	p.Heal()
	close(hangs)
	<-hung
	b.stop()
	j.want(t, "b ends")
	if err := <-b.end; err != nil {
		t.Error(err)
	}
}

// What cannot be is refused.
func TestNewManagerRefuses(t *testing.T) {
	for want, change := range map[string]func(*manager.Options){
		"LeaderElectionID is empty": func(o *manager.Options) { o.LeaderElectionID = "" },
		"LeaderElectionNamespace":   func(o *manager.Options) { o.LeaderElectionNamespace = "" },
		"TTL":                       func(o *manager.Options) { *o.LeaseDuration = time.Millisecond },
	} {
		o := electing("x")
		change(&o)
		o.MapperProvider = options().MapperProvider
		if _, err := ours(nowhere, o); err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("NewManager: %v, want %q", err, want)
		}
	}
	lasts := 15*time.Second + time.Second/2
	if got := controllerruntime.SessionTime(&lasts); got != 15*time.Second {
		t.Errorf("with a LeaseDuration of %v the session time is %v; client-go's candidates write 15 s", lasts, got)
	}
	o := electing("x")
	o.LeaderElection = false
	o.MapperProvider = options().MapperProvider
	if m, err := ours(nowhere, o); err != nil || m == nil {
		t.Errorf("without leader election: %v", err)
	}
}

// The election has the options that it is given. Without a logger it logs to that of the manager, so a coordinator that cannot be reached
// is told there.
func TestNewManagerTells(t *testing.T) {
	for _, own := range []bool{false, true} {
		t.Run(fmt.Sprintf("a logger of its own: %v", own), func(t *testing.T) {
			var managers, elections lines
			o := electing("x")
			o.MapperProvider = options().MapperProvider
			o.Logger = funcr.New(func(_, args string) { managers.add(args) }, funcr.Options{})
			retried := make(chan error, 100)
			eo := &elect.Options{ID: "web-1", Trace: func(ev trace.Event) {
				if ev.Kind == trace.Retrying {
					retried <- ev.Err
				}
			}}
			told, silent := &managers, &elections
			if own {
				eo.Logger = slog.New(logr.ToSlogHandler(funcr.New(func(_, args string) { elections.add(args) }, funcr.Options{})))
				told, silent = silent, told
			}
			m, err := controllerruntime.NewManager(nowhere, o, eo)
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- m.Start(ctx) }()
			select {
			case err := <-retried:
				if !errors.Is(err, backend.ErrUnavailable) {
					t.Error(err)
				}
			case <-time.After(besideAgain):
				t.Error("nothing is retried")
			}
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			for _, want := range []string{"campaign interrupted", `"election"="x"`, `"id"="web-1"`} {
				if !told.have(want) || silent.have(want) {
					t.Errorf("the logger that it is to log to has %q: %v; the other has it: %v", want, told.have(want), silent.have(want))
				}
			}
		})
	}
}

// lines are those of a log.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
}

func (l *lines) have(part string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.all, func(line string) bool { return strings.Contains(line, part) })
}

// The registry of controller-runtime has the gauge of client-go and takes no other of that name, as MasterStatus of package metrics says.
func TestRegistryHasMasterStatus(t *testing.T) {
	other := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "leader_election_master_status", Help: "Of another."}, []string{"name"})
	if err := crmetrics.Registry.Register(other); err == nil {
		t.Error("it takes another")
	}
}
