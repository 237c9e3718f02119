//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/succession-dev/succession/internal/rig/arena"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	_ "github.com/succession-dev/succession/kubernetes"
)

func init() { arena.Register("kubernetes", startKubernetes) }

// startKubernetes starts two API servers on n servers of etcd. A client talks to one of the two, as a kubeconfig names one.
func startKubernetes(ctx context.Context, dir string, n int, _ bool) (*arena.Coordinator, error) {
	k, err := coordtest.StartKubernetes(ctx, &coordtest.KubernetesOptions{Servers: min(n, 2), Etcd: &coordtest.EtcdOptions{Nodes: n}})
	if err != nil {
		return nil, err
	}
	ca, err := k.CA()
	file := filepath.Join(dir, "ca.pem")
	if err == nil {
		err = os.WriteFile(file, ca, 0o600)
	}
	if err != nil {
		k.Stop()
		return nil, err
	}
	const ttl = 4 * time.Second
	return &arena.Coordinator{
		Cluster: &k.Cluster,
		Below:   &k.Etcd().Cluster,
		TTL:     ttl,
		Crash:   ttl*9/4 + time.Second, // sessions that nobody waits for are looked at about once in a TTL
		URL: func(i int, addrs []string) string {
			config := filepath.Join(dir, fmt.Sprintf("kubeconfig-%d", i))
			if err := writeConfig(config, addrs[i%len(addrs)], file); err != nil {
				panic(err) // the folder of the run is gone
			}
			return fmt.Sprintf("kubernetes://default/chaos?kubeconfig=%s&ttl=%v", url.QueryEscape(config), ttl)
		},
	}, nil
}

// writeConfig writes a kubeconfig.
func writeConfig(path, addr, ca string) error {
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: chaos
clusters: [{name: chaos, cluster: {server: "https://%s", certificate-authority: %q}}]
users: [{name: chaos, user: {token: %s}}]
contexts: [{name: chaos, context: {cluster: chaos, user: chaos}}]
`, addr, ca, coordtest.KubernetesToken)
	// In one step: somebody may be reading it.
	return errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path))
}
