//go:build linux

package kubernetes_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/kubernetes"
)

// BenchmarkHandover measures the time from the leader's resigning until the next in line knows that it is first, each candidate
// with a session and a connection of its own, all in this process; and beside it the least that any election can do there: a
// Lease is deleted, and who watches it reads another one.
//
//	go test -run '^$' -bench Handover -benchtime 300x .
func BenchmarkHandover(b *testing.B) {
	for _, n := range []int{5, 100} {
		for name, f := range map[string]func(*testing.B, *coordtest.Kubernetes, int) func() time.Duration{
			"line": lineHandover(""), "beside": lineHandover(kubernetes.ClientGo), "floor": floorHandover} {
			b.Run(fmt.Sprintf("%s/n=%d", name, n), func(b *testing.B) {
				handover := f(b, sharedKubernetes(b), n)
				var all []time.Duration
				for b.Loop() {
					all = append(all, handover())
				}
				slices.Sort(all)
				b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "p50-ms")
				b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

func lineHandover(as kubernetes.Format) func(*testing.B, *coordtest.Kubernetes, int) func() time.Duration {
	return func(b *testing.B, k *coordtest.Kubernetes, n int) func() time.Duration {
		return handoverOf(b, k, n, as)
	}
}

func handoverOf(b *testing.B, k *coordtest.Kubernetes, n int, as kubernetes.Format) func() time.Duration {
	type candidate struct {
		s backend.Session
		m backend.Member
	}
	prefix := fmt.Sprintf("handover-%08x", rand.Uint32())
	var line []candidate
	for range n {
		cfg, err := configOf(k, k.Addrs()[0], coordtest.KubernetesToken)
		if err != nil {
			b.Fatal(err)
		}
		c, err := kubernetes.New(cfg, &kubernetes.Options{Namespace: "default", Prefix: prefix, TTL: 15 * time.Second, As: as})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { c.Close() })
		s, err := c.Session(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		line = append(line, candidate{s, join(b, s, "e", "x")})
	}
	told := make(chan time.Time)
	wait := func(c candidate) {
		p, err := c.s.Ahead(b.Context(), c.m)
		for err == nil && !p.First {
			err = c.s.WatchPlace(b.Context(), c.m, &p)
		}
		if err == nil {
			told <- time.Now()
		}
	}
	for _, c := range line[1:] {
		go wait(c)
	}
	return func() time.Duration {
		time.Sleep(50 * time.Millisecond) // until all wait again
		first := line[0]
		begun := time.Now()
		if err := first.s.Leave(b.Context(), first.m); err != nil {
			b.Fatal(err)
		}
		took := (<-told).Sub(begun)
		first.m = join(b, first.s, "e", "x")
		line = append(line[1:], first)
		go wait(first)
		return took
	}
}

func floorHandover(b *testing.B, k *coordtest.Kubernetes, _ int) func() time.Duration {
	cfg, err := configOf(k, k.Addrs()[0], coordtest.KubernetesToken)
	if err != nil {
		b.Fatal(err)
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(client.CloseIdleConnections)
	send := func(ctx context.Context, method, path, body string) *http.Response {
		req, err := http.NewRequestWithContext(ctx, method, cfg.Host+leases+path, strings.NewReader(body))
		if err == nil {
			req.Header.Set("Content-Type", "application/json")
			var resp *http.Response
			if resp, err = client.Do(req); err == nil {
				return resp
			}
		}
		b.Error(err)
		panic(err)
	}
	row := 0
	return func() time.Duration {
		row++
		name := fmt.Sprintf("floor-%d", row)
		send(b.Context(), http.MethodPost, "", `{"metadata":{"name":"`+name+`"}}`).Body.Close()
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		watch := send(ctx, http.MethodGet, "?watch=true&fieldSelector=metadata.name%3D"+name, "")
		defer watch.Body.Close()
		told := make(chan time.Time, 1)
		go func() {
			for lines := bufio.NewScanner(watch.Body); lines.Scan(); {
				if strings.Contains(lines.Text(), `"DELETED"`) {
					send(ctx, http.MethodGet, "/none", "").Body.Close()
					told <- time.Now()
					return
				}
			}
		}()
		time.Sleep(20 * time.Millisecond)
		begun := time.Now()
		send(b.Context(), http.MethodDelete, "/"+name, "").Body.Close()
		return (<-told).Sub(begun)
	}
}
