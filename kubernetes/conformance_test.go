//go:build linux

package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/internal/rig/lane"
	"github.com/succession-dev/succession/internal/rig/linear"
	"github.com/succession-dev/succession/kubernetes"
)

// TestConformance runs every rule on an API server of its own, each client behind a proxy of its own. It is not parallel
// to the tests of the driver, which would disturb what it measures. It takes five minutes of a processor, so it is for ./test all.
func TestConformance(t *testing.T) {
	lane.All(t)
	run(t, harness(t, coordtest.KubernetesOptions{}, kubernetes.Options{}))
}

// TestConformanceOldest runs every rule on the oldest version of the API server that this package works with.
func TestConformanceOldest(t *testing.T) {
	lane.All(t)
	run(t, harness(t, coordtest.KubernetesOptions{Oldest: true}, kubernetes.Options{}))
}

// TestConformanceBeside runs the rules with a Lease of client-go's in each election. It has neither shared members nor pins.
func TestConformanceBeside(t *testing.T) {
	lane.All(t)
	h := harness(t, coordtest.KubernetesOptions{}, kubernetes.Options{As: kubernetes.ClientGo})
	delete(h.Waive, "Queue.cost") // without shared members there are no queues
	h.Costs["G5.handover"] = 6    // who leaves also clears the Lease, and who leads takes it
	h.Waive["L1.apart"] = "it joins a line with an underscore in its name, which no Lease has"
	h.Waive["Lock.cost"] = "who is first also takes the Lease, and who leaves clears it: some four requests more"
	run(t, h)
}

// TestHistories has histories of records, items and locks fit one order, with one API server and with two.
func TestHistories(t *testing.T) {
	lane.All(t)
	for _, servers := range []int{1, 2} {
		t.Run(fmt.Sprint("servers=", servers), func(t *testing.T) {
			linear.Run(t, harness(t, coordtest.KubernetesOptions{Servers: servers}, kubernetes.Options{}))
		})
	}
}

// run runs the rules, and asks an API server beside those of h how busy the machine is.
func run(t *testing.T, h conformance.Harness) {
	h.Reference = reference(t)
	conformance.Run(t, h)
}

// harness is that of API servers on one etcd, and clients with the options o. The clients are spread over the servers.
func harness(t *testing.T, servers coordtest.KubernetesOptions, o kubernetes.Options) conformance.Harness {
	k := coordtest.NewKubernetes(t, &servers)
	url := "kubernetes://default?ttl=" + ttl.String() + "&as=" + string(o.As) + "&kubeconfig=" + kubeconfig(t, k, coordtest.KubernetesToken)
	operator := rig.OperatorOf(t, url)
	var opened atomic.Int64
	h := conformance.Harness{
		Name:    "kubernetes",
		TTL:     ttl,
		Slack:   ttl * 5 / 4, // sessions that nobody waits for are looked at about once in a TTL
		Latency: max(4*time.Second, ttl),
		Open: func(context.Context) (backend.Backend, error) {
			c, err := open(k, k.Addrs()[opened.Add(1)%int64(len(k.Addrs()))], o)
			if err != nil {
				return nil, err
			}
			return c, nil
		},
		Faults: conformance.Faults{
			Process: rig.Process(url),
			Restart: k.Restart,
			Pause: func(context.Context) (func(), error) {
				return func() {
					if err := k.Resume(); err != nil {
						t.Error(err)
					}
				}, k.Pause()
			},
			Remove:  operator.Remove,
			Drop:    operator.Drop,
			Reset:   k.Wipe,
			Rewind:  k.Backup,
			Compact: k.Compact,
		},
		Lacks: map[conformance.Fault]string{
			conformance.Promote:       "what it acknowledges is on a quorum of etcd's servers",
			conformance.PromoteBeside: "what it acknowledges is on a quorum of etcd's servers",
			conformance.Clock:         "nothing rests on a clock of the API server: sessions end by the clocks of other sessions",
			conformance.Cluster:       "API servers have no leader among them",
		},
		Waive: map[string]string{
			"G3.held-dropped": "the record of an election lists what a guarded write may reach, and an operator deletes it with the members (docs/safety.md)",
			"Queue.cost":      "to take an item and to confirm it are some sixteen requests, as no request reads or writes several objects under a condition; it is the same however many items stand",
		},
		Costs:    map[string]int64{"G5.handover": 3, "G5.rest": 5},
		Complete: true,
	}
	rig.Clients(&h.Faults, func(b backend.Backend) []rig.Client { return []rig.Client{rigClient{b.(*client)}} })
	return h
}

// reference starts an API server for the test, and returns a Reference of a harness to it: it writes a Lease.
func reference(t testing.TB) func(context.Context) error {
	t.Helper()
	k := coordtest.NewKubernetes(t, nil)
	cfg, err := configOf(k, k.Addrs()[0], coordtest.KubernetesToken)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Dial = rig.DialUnlabelled
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	ask := func(ctx context.Context, method, path, kind, body string) error {
		req, err := http.NewRequestWithContext(ctx, method, cfg.Host+leases+path, strings.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", kind)
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		if resp.StatusCode >= 300 {
			err = errors.New(resp.Status)
		}
		return errors.Join(err, resp.Body.Close())
	}
	if err := ask(t.Context(), http.MethodPost, "", "application/json", `{"metadata": {"name": "reference"}}`); err != nil {
		t.Fatal(err)
	}
	var n atomic.Int64
	return func(ctx context.Context) error {
		return ask(ctx, http.MethodPatch, "/reference", "application/merge-patch+json", fmt.Sprintf(`{"metadata": {"annotations": {"n": "%d"}}}`, n.Add(1)))
	}
}

// TestConformanceTwo runs the rules on two API servers that keep their data in one etcd. The clients are spread over them.
func TestConformanceTwo(t *testing.T) {
	lane.All(t)
	run(t, harness(t, coordtest.KubernetesOptions{Servers: 2}, kubernetes.Options{}))
}
