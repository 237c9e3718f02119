//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/lane"
)

// The command knows Kubernetes by what its driver brings, and by nothing else.
func TestKubernetes(t *testing.T) {
	lane.All(t)
	k := coordtest.NewKubernetes(t, nil)
	ca, err := k.CA()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config+".pem", ca, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte(`{apiVersion: v1, kind: Config, current-context: c,
clusters: [{name: c, cluster: {server: "https://`+k.Addrs()[0]+`", certificate-authority: "`+config+`.pem"}}],
users: [{name: c, user: {token: `+coordtest.KubernetesToken+`}}], contexts: [{name: c, context: {cluster: c, user: c}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	url := "kubernetes://default/app?ttl=3s&kubeconfig=" + config
	prints := func(want string, args ...string) {
		t.Helper()
		if out, err := printed(args...); err != nil || !strings.Contains(out, want) {
			t.Errorf("succession %s: %v\n%s\nwant %q", strings.Join(args, " "), err, out, want)
		}
	}
	prints("", "set", "greeting", "hello", "--url", url)
	prints("hello", "get", "greeting", "--url", url)
	prints("led", "run", "e", "--url", url, "--", "echo", "led")
	prints("", "set", "app/greeting", "hello", "--url", url)
	offers(t, "app/greeting", "get", "--url", url, "app/gr")
	prints(" 0 failed", "conformance", "--url", url, "--faults", "all", "--rule", "L1.end", "--rule", "L1.lost-answer", "--rule", "L3.cut", "--rule", "Fault.mute")
}

func TestKubernetesRights(t *testing.T) {
	for want, args := range map[string][]string{
		"verbs: [get, list, watch, create, patch, delete]": {"rights", "e", "--url", "kubernetes://prod"},
		"kubernetes://": {"__complete", "get", "--url", "kube"},
	} {
		if out, err := printed(args...); err != nil || !strings.Contains(out, want) {
			t.Errorf("succession %s: %v\n%s\nwant %q", strings.Join(args, " "), err, out, want)
		}
	}
}
