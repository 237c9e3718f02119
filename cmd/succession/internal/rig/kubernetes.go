//go:build linux

package main

import (
	"context"
	"fmt"
	"net/url"
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
	const ttl = 4 * time.Second
	return &arena.Coordinator{
		Cluster: &k.Cluster,
		Below:   &k.Etcd().Cluster,
		TTL:     ttl,
		Crash:   ttl*9/4 + time.Second, // sessions that nobody waits for are looked at about once in a TTL
		URL: func(i int, addrs []string) string {
			config := filepath.Join(dir, fmt.Sprintf("kubeconfig-%d", i))
			if err := k.WriteConfig(config, addrs[i%len(addrs)], coordtest.KubernetesToken); err != nil {
				panic(err) // the folder of the run is gone
			}
			return fmt.Sprintf("kubernetes://default/chaos?kubeconfig=%s&ttl=%v", url.QueryEscape(config), ttl)
		},
	}, nil
}
