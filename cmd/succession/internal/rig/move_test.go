//go:build linux

package main

import (
	"fmt"
	"path/filepath"
	"testing"

	_ "github.com/succession-dev/succession/consul"
	_ "github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/lane"
	"github.com/succession-dev/succession/internal/rig/move"
	_ "github.com/succession-dev/succession/zookeeper"
)

// Elections move between PostgreSQL, Kubernetes and each of the others while somebody leads them. What the others do among themselves is tested with package migrate.
func TestMoves(t *testing.T) {
	lane.All(t)
	k := coordtest.NewKubernetes(t, nil)
	config := filepath.Join(t.TempDir(), "config")
	if err := k.WriteConfig(config, k.Addrs()[0], coordtest.KubernetesToken); err != nil {
		t.Fatal(err)
	}
	addresses := map[string]string{
		"zookeeper": coordtest.NewZooKeeper(t, nil).Addrs()[0], "etcd": coordtest.NewEtcd(t, nil).Addrs()[0],
		"consul": coordtest.NewConsul(t, nil).Addrs()[0], "postgres": coordtest.NewPostgres(t, nil).Addrs()[0],
	}
	// urlOf returns a URL below which nothing is: a coordinator is of one spread.
	urlOf := func(on, prefix string) string {
		switch on {
		case "kubernetes":
			return "kubernetes://default/" + prefix + "?ttl=20s&kubeconfig=" + config
		case "postgres":
			return "postgres://" + addresses[on] + "/postgres?user=postgres&sslmode=disable&ttl=20s&schema=" + prefix
		default:
			return on + "://" + addresses[on] + "/" + prefix + "?ttl=20s"
		}
	}
	for i, pair := range [][2]string{
		{"zookeeper", "postgres"}, {"etcd", "postgres"}, {"consul", "postgres"},
		{"zookeeper", "kubernetes"}, {"etcd", "kubernetes"}, {"consul", "kubernetes"}, {"postgres", "kubernetes"},
	} {
		t.Run(fmt.Sprint(pair[0], " and ", pair[1]), func(t *testing.T) {
			prefix := fmt.Sprint("of", i)
			move.Check(t, urlOf(pair[0], prefix), urlOf(pair[1], prefix))
		})
	}
}
