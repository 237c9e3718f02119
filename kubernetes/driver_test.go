//go:build linux

package kubernetes_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/kubernetes"
)

func urlOf(t testing.TB, k *coordtest.Kubernetes, prefix string) string {
	return "kubernetes://default/" + prefix + "?ttl=" + ttl.String() + "&kubeconfig=" + kubeconfig(t, k, coordtest.KubernetesToken)
}

func TestOperator(t *testing.T) {
	t.Parallel()
	rig.CheckOperator(t, urlOf(t, sharedKubernetes(t), coordtest.Name(t)))
}

func TestSurvey(t *testing.T) {
	t.Parallel()
	rig.CheckSurvey(t, newClient(t, sharedKubernetes(t), kubernetes.Options{Prefix: coordtest.Name(t)}))
}

// With the rights that the driver names everything can be done, and each that is missing is named.
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
	const rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/"
	for i, doc := range strings.Split(d.Rights(u, "e"), "---\n") {
		if err := create(t, admin, rbac+[]string{"roles", "rolebindings"}[i], doc); err != nil {
			t.Fatal(err)
		}
	}
	use := func(user string) error {
		cfg := rest.CopyConfig(admin)
		cfg.BearerToken = coordtest.KubernetesUserToken(user)
		b, err := kubernetes.New(cfg, &kubernetes.Options{Namespace: "default", TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
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
	if err := use("system:serviceaccount:default:default"); err != nil {
		t.Errorf("with the rights: %v", err)
	}
	err = use("app")
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
