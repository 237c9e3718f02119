//go:build linux

package kubernetes_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/kubernetes"
)

func urlOf(t testing.TB, k *coordtest.Kubernetes, prefix string) string {
	return "kubernetes://default/" + prefix + "?ttl=" + long.String() + "&kubeconfig=" + kubeconfig(t, k, coordtest.KubernetesToken)
}

func TestOperator(t *testing.T) {
	t.Parallel()
	rig.CheckOperator(t, urlOf(t, sharedKubernetes(t), coordtest.Name(t)))
}

func TestSurvey(t *testing.T) {
	t.Parallel()
	rig.CheckSurvey(t, newClient(t, sharedKubernetes(t), kubernetes.Options{Prefix: coordtest.Name(t)}))
}

// With the rights that the driver names everything can be done, and each that is missing is named: by the call that needs it, or in the log.
func TestRights(t *testing.T) {
	t.Parallel()
	k := coordtest.NewKubernetes(t, &coordtest.KubernetesOptions{Users: []string{"app", "system:serviceaccount:default:default"}})
	admin, err := configOf(k, k.Addrs()[0], coordtest.KubernetesToken)
	if err != nil {
		t.Fatal(err)
	}
	d, err := coordinator.DefaultMux.Driver(&coordinator.URL{Scheme: "kubernetes"})
	if err != nil {
		t.Fatal(err)
	}
	u, err := coordinator.ParseURL("kubernetes://default")
	if err != nil {
		t.Fatal(err)
	}
	role, err := d.Rights(u, "e")
	if err != nil {
		t.Fatal(err)
	}
	const rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/"
	for i, doc := range strings.Split(role, "---\n") {
		if err := create(t, admin, rbac+[]string{"roles", "rolebindings"}[i], doc); err != nil {
			t.Fatal(err)
		}
	}
	in := func(namespace, user string, ttl time.Duration, log io.Writer) *kubernetes.Backend {
		cfg := rest.CopyConfig(admin)
		cfg.BearerToken = coordtest.KubernetesUserToken(user)
		b, err := kubernetes.New(cfg, &kubernetes.Options{Namespace: namespace, TTL: ttl, Logger: slog.New(slog.NewTextHandler(log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	use := func(user string, log io.Writer) error {
		b := in("default", user, 2*ttl, log)
		defer b.Close()
		s, err := b.Session(t.Context())
		if err != nil {
			return err
		}
		j, err := s.Join(t.Context(), "e", "x", "")
		if err != nil {
			return err
		}
		if _, err := s.Ahead(t.Context(), j.Member); err != nil {
			return err
		}
		if _, err := s.Put(t.Context(), "e", nil, &backend.If{Member: j.Member}); err != nil {
			return err
		}
		if _, err := s.Survey(t.Context()); err != nil {
			return err
		}
		return s.Leave(t.Context(), j.Member)
	}
	const pods = "system:serviceaccount:default:default"
	if err := use(pods, io.Discard); err != nil {
		t.Errorf("with the rights: %v", err)
	}
	other := in("kube-system", pods, long, io.Discard)
	if _, err := other.Session(t.Context()); !errors.Is(err, backend.ErrDenied) || !strings.Contains(err.Error(), `"kube-system"`) {
		t.Errorf("in a namespace where it has no rights: %v, want ErrDenied", err)
	}
	other.Close()
	crashed := newClient(t, k, kubernetes.Options{TTL: time.Second}) // somebody must delete its session
	crashed.live(t)
	crashed.proxy.Cut()
	const all = `["get", "list", "watch", "create", "patch", "delete"]`
	for _, verb := range []string{"get", "list", "watch", "create", "delete", "patch"} {
		rest := strings.NewReplacer(`"`+verb+`", `, "", `, "`+verb+`"`, "").Replace(all)
		patch := `{"rules": [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ` + rest + `}]}`
		if err := doAs(t.Context(), admin, http.MethodPatch, rbac+"roles/succession", "application/merge-patch+json", patch); err != nil {
			t.Fatal(err)
		}
		names := "cannot " + verb + " resource"
		logs := `verb=` + verb + ` why=`
		for begun := time.Now(); ; { // until the API server knows the role
			var log syncBuffer
			err := use(pods, &log)
			if strings.Contains(fmt.Sprint(err), names) || strings.Contains(log.String(), names) {
				if !strings.Contains(log.String(), logs) {
					t.Errorf("without %s the log does not have %q, but\n%s", verb, logs, &log)
				}
				break
			}
			if time.Since(begun) > time.Minute {
				t.Fatalf("without %s: %v, and the log has\n%s", verb, err, &log)
			}
		}
		// Also where nobody calls: a session that is not renewed, and one that does not end another that has crashed.
		var log syncBuffer
		b := in("default", pods, ttl, &log)
		s, err := b.Session(t.Context())
		switch {
		case verb == "patch" && err == nil:
			watch := calm.Start(t)
			<-s.Done()
			if !strings.Contains(s.Err().Error(), names) && !watch.NotJudged(ttl/4, "a session without patch has ended: %v", s.Err()) {
				t.Errorf("a session without patch has ended: %v", s.Err())
			}
		case verb == "delete" && err == nil:
			for begun := time.Now(); !strings.Contains(log.String(), names); time.Sleep(time.Millisecond) {
				if time.Since(begun) > time.Minute {
					t.Fatalf("who may not delete a session that has crashed keeps it to itself:\n%s", &log)
				}
			}
			if n := strings.Count(log.String(), names); n != 1 && s.Err() == nil { // a session that has ended says so as well
				t.Errorf("it was logged %d times:\n%s", n, &log)
			}
		case verb == "patch" || verb == "delete":
			t.Error(err)
		}
		b.Close()
	}
	err = use("app", io.Discard)
	if !errors.Is(err, backend.ErrDenied) {
		t.Fatalf("without rights: %v, want ErrDenied", err)
	}
	for _, want := range []string{`"app"`, "create", "leases", "coordination.k8s.io", `"default"`, "succession rights"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("without rights: %v\nwant it to say %s", err, want)
		}
	}
	admin.BearerToken = "nobody's"
	b, err := kubernetes.New(admin, &kubernetes.Options{Namespace: "default"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := b.Session(t.Context()); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("with a token that nobody has: %v, want ErrDenied", err)
	}
}

func create(t testing.TB, admin *rest.Config, path, doc string) error {
	t.Helper()
	return doAs(t.Context(), admin, http.MethodPost, path, "application/yaml", doc)
}

// The faults of writes are what they say. A write that comes late meets another version.
func TestFaultsOfWrites(t *testing.T) {
	t.Parallel()
	k := sharedKubernetes(t)
	o := kubernetes.Options{Prefix: coordtest.Name(t)}
	c := newClient(t, k, o)
	rig.CheckWrites(t, rigClient{c}, c.live(t), newClient(t, k, o).live(t), "faults-of-writes", false)
}

// A syncBuffer is a buffer for concurrent use.
type syncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Who watches a line is told that its last member has crashed, also if nobody watches over all sessions.
func TestWatchLineWithoutGuards(t *testing.T) {
	t.Parallel()
	k, prefix := sharedKubernetes(t), coordtest.Name(t)
	client := func(ttl time.Duration) *client {
		c := newClient(t, k, kubernetes.Options{Prefix: prefix, TTL: ttl})
		kubernetes.NoGuard(c.Backend)
		c.live(t)
		return c
	}
	for range 12 { // the more there are, the rarer do they look at each other
		client(long)
	}
	crashes, watches := client(ttl), client(ttl)
	join(t, crashes.live(t), "e", "crashes")
	s := watches.live(t)
	line, err := s.Line(t.Context(), "e")
	if err != nil || len(line.Members) != 1 {
		t.Fatal(line, err)
	}
	told := make(chan error, 1)
	go func() {
		now, err := s.WatchLine(t.Context(), "e", line)
		if err == nil && len(now.Members) > 0 {
			err = fmt.Errorf("%d stand in line", len(now.Members))
		}
		told <- err
	}()
	crashes.Proxy().Kill()
	watch := calm.Start(t)
	select {
	case err := <-told:
		if err != nil && !watch.NotJudged(ttl/4, "who watches is told %v", err) {
			t.Error(err)
		}
		watch.Within(3*ttl+ttl/2, "to find the crash")
	case <-time.After(time.Minute):
		t.Fatal("nobody finds the crash")
	}
}
