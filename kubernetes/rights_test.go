package kubernetes

import (
	"errors"
	"os"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
)

// The page shows what the command prints.
func TestRightsOnThePage(t *testing.T) {
	page, err := os.ReadFile("../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	u, err := coordinator.ParseURL("kubernetes://prod")
	if err != nil {
		t.Fatal(err)
	}
	if want, err := rights(u, "reports"); err != nil || !strings.Contains(string(page), want) {
		t.Errorf("%v; docs/kubernetes.md does not have\n%s", err, want)
	}
}

// Where the API server is, and which namespace, comes from a kubeconfig, and what is wrong with it is said.
func TestURLs(t *testing.T) {
	dir := t.TempDir()
	config := dir + "/config"
	err := os.WriteFile(config, []byte(`{apiVersion: v1, kind: Config, current-context: one,
clusters: [{name: c, cluster: {server: "https://h:6443"}}], users: [{name: u, user: {token: t}}],
contexts: [{name: one, context: {cluster: c, user: u, namespace: team}}, {name: two, context: {cluster: c, user: u}}]}`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", dir)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for raw, want := range map[string]string{
		"kubernetes://prod/app?kubeconfig=" + config:                "prod app",
		"kubernetes:///app/x?kubeconfig=" + config:                  "team app/x",
		"kubernetes://?context=two&kubeconfig=" + config:            "default ",
		"kubernetes://prod?context=three&kubeconfig=" + config:      `!three`,
		"kubernetes:///app/x":                                       "!there is no kubeconfig",
		"kubernetes://prod":                                         "!there is no kubeconfig",
		"kubernetes://prod?kubeconfig=" + dir + "/none":             "!no such file",
		"kubernetes://prod:6443/?kubeconfig=" + config:              "!write kubernetes://NAMESPACE/PREFIX",
		"kubernetes://a,b?kubeconfig=" + config:                     "!write kubernetes://NAMESPACE/PREFIX",
		"kubernetes://prod?ttl=10ms&kubeconfig=" + config:           "!TTL 10ms is not between",
		"kubernetes://prod?server=h&kubeconfig=" + config:           "!server",
		"kubernetes://prod/a//b?kubeconfig=" + config:               "!empty segment",
		"kubernetes://prod?ttl=15s&connect=1s&kubeconfig=" + config: "prod ",
	} {
		u, err := coordinator.ParseURL(raw)
		if err != nil {
			t.Fatal(err)
		}
		b, err := Open(u)
		got := ""
		if err == nil {
			got = b.o.Namespace + " " + b.o.Prefix
			b.Close()
		}
		role, refused := rights(u, "e")
		if err == nil && !strings.Contains(role, "\n  namespace: "+strings.Fields(want)[0]+"\n") {
			t.Errorf("%s: the rights are in another namespace, %v:\n%s", raw, refused, role)
		}
		if err != nil && refused == nil && len(u.Hosts) == 0 && !strings.Contains(role, "\n  namespace: NAMESPACE ") {
			t.Errorf("%s: the rights name a namespace that nobody knows:\n%s", raw, role)
		}
		if says, bad := strings.CutPrefix(want, "!"); bad && (err == nil || !strings.Contains(err.Error(), says)) || !bad && got != want {
			t.Errorf("%s: %q, %v; want %q", raw, got, err, want)
		}
	}
}

// A pod that mounts no token is told so; a kubeconfig will do as well.
func TestPodWithoutToken(t *testing.T) {
	if _, err := namespaceOfPod(); err == nil {
		t.Skip("this is a pod")
	}
	home := clientcmd.RecommendedHomeFile // ~/.kube/config
	defer func() { clientcmd.RecommendedHomeFile = home }()
	clientcmd.RecommendedHomeFile = t.TempDir() + "/config"
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "192.0.2.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	_, _, err := load("", "")
	if err == nil || !strings.Contains(err.Error(), "set serviceAccountName and automountServiceAccountToken: true") {
		t.Errorf("without a kubeconfig: %v", err)
	}
	err = os.WriteFile(clientcmd.RecommendedHomeFile, []byte(`{apiVersion: v1, kind: Config, current-context: one, clusters: [{name: c, cluster: {server: "https://h:6443"}}],
users: [{name: u, user: {token: t}}], contexts: [{name: one, context: {cluster: c, user: u, namespace: team}}]}`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if cfg, namespace, err := load("", ""); err != nil || cfg.Host != "https://h:6443" || namespace != "team" {
		t.Errorf("with ~/.kube/config: %+v in %q, %v", cfg, namespace, err)
	}
}

// Outside of a pod New has to be told the namespace: with another one than Open takes, two would lead.
func TestNamespace(t *testing.T) {
	if _, err := namespaceOfPod(); err == nil {
		t.Skip("this is a pod")
	}
	for _, o := range []*Options{nil, {}, {Prefix: "app"}} {
		if _, err := New(&rest.Config{Host: "https://h"}, o); !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), "Namespace is empty") {
			t.Errorf("with %+v: %v, want ErrInvalid", o, err)
		}
	}
}
