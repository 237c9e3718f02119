//go:build linux

package main

import (
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
	config := filepath.Join(t.TempDir(), "config")
	if err := k.WriteConfig(config, k.Addrs()[0], coordtest.KubernetesToken); err != nil {
		t.Fatal(err)
	}
	url := "kubernetes://default/app?connect=30s&kubeconfig=" + config
	prints := func(want string, args ...string) {
		t.Helper()
		if out, err := printed(args...); err != nil || !strings.Contains(out, want) {
			t.Errorf("succession %s: %v\n%s\nwant %q", strings.Join(args, " "), err, out, want)
		}
	}
	prints("", "set", "greeting", "hello", "--url", url, "--timeout", "1m")
	prints("hello", "get", "greeting", "--url", url, "--timeout", "1m")
	prints("led", "run", "e", "--url", url, "--timeout", "1m", "--", "echo", "led")
	prints("", "set", "app/greeting", "hello", "--url", url, "--timeout", "1m")
	offers(t, "app/greeting", "get", "--url", url, "app/gr")
	conformsInShort(t, url+"&ttl=3s")
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
