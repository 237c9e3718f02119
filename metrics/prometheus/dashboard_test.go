//go:build linux

package prometheus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/metrics"
	"github.com/succession-dev/succession/metrics/prometheus"
	"github.com/succession-dev/succession/migrate"
)

const (
	rulesFile     = "../dashboards/alerts.yml"
	dashboardFile = "../dashboards/succession.json"
)

// A candidate is what stands for one process.
type candidate struct {
	e      *elect.Election
	b      *memory.Backend
	m      *metrics.Recorder
	addr   string // where it is scraped
	resign chan struct{}
}

// startCandidates starts candidates of the election reports. The first is scraped by a registry,
// and the others by their recorders themselves. They end with the test.
func startCandidates(t *testing.T, n int) ([]*candidate, *memory.Coordinator) {
	c := memory.New(&memory.Options{TTL: 6 * time.Second})
	ctx, cancel := context.WithCancel(context.Background())
	var all []*candidate
	ended := make(chan struct{})
	for i := range n {
		k := &candidate{b: c.Client(fmt.Sprint(i)), m: metrics.New(nil), resign: make(chan struct{})}
		k.e = elect.New(k.b, "reports", &elect.Options{Trace: k.m.Trace})
		var h http.Handler = k.m
		if i == 0 {
			registry := client.NewRegistry()
			registry.MustRegister(prometheus.NewCollector(k.m))
			h = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
		}
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		k.addr = strings.TrimPrefix(s.URL, "http://")
		go func() {
			for ctx.Err() == nil {
				k.e.Run(ctx, k.work)
			}
			k.b.Close()
			ended <- struct{}{}
		}()
		all = append(all, k)
	}
	t.Cleanup(func() {
		cancel()
		for range all {
			<-ended
		}
	})
	return all, c
}

func (k *candidate) work(ctx context.Context, _ *elect.Term) error {
	select {
	case <-k.resign:
	case <-ctx.Done():
	}
	return nil
}

// leader returns who leads; nil if nobody does.
func leader(all []*candidate) *candidate {
	for _, k := range all {
		if k.e.Term() != nil {
			return k
		}
	}
	return nil
}

// handOver has the leader resign.
func handOver(all []*candidate) {
	for {
		if k := leader(all); k != nil {
			select {
			case k.resign <- struct{}{}:
				return
			case <-time.After(time.Second): // it has lost leadership meanwhile
			}
		}
	}
}

// A real Prometheus that scrapes a real election sees who leads, and has data for each expression
// of the dashboard; and it understands the rules.
func TestDashboard(t *testing.T) {
	all, c := startCandidates(t, 3)
	s := startServer(t, rulesFile, []string{all[0].addr, all[1].addr, all[2].addr})
	// until asks again until an answer is as wanted.
	until := func(expr string, good func([]sample) bool) {
		t.Helper()
		var got []sample
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			var err error
			if got, err = s.query(t.Context(), expr); err != nil {
				t.Fatal(err)
			}
			if good(got) {
				return
			}
		}
		t.Errorf("the answer to %s is at last\n%v", expr, got)
	}
	seesTheLeader := func() {
		t.Helper()
		until("succession_leader == 1", func(got []sample) bool {
			k := leader(all)
			return k != nil && len(got) == 1 && got[0].labels["instance"] == k.addr && got[0].labels["election"] == "reports"
		})
		until("sum by (election) (succession_leader)", func(got []sample) bool { return len(got) == 1 && got[0].value == 1 })
	}
	until("sum(up)", func(got []sample) bool { return len(got) == 1 && got[0].value == 3 })
	seesTheLeader()
	for range 2 { // each registry and recorder may lead
		handOver(all)
		seesTheLeader()
	}
	for _, k := range all {
		k.m.MigrationPhase("reports", migrate.Begun)
		if k.e.Term() == nil {
			k.b.Expire() // which it retries
		}
	}
	paused := func(v float64) func(got []sample) bool {
		return func(got []sample) bool { return len(got) == 1 && got[0].value == v }
	}
	pauses(t, c, func() { until("max by (election) (succession_paused)", paused(1)) })
	until("max by (election) (succession_paused)", paused(0))
	for _, expr := range expressions(t) {
		until(expr, func(got []sample) bool {
			for _, x := range got {
				if !math.IsNaN(x.value) {
					return true
				}
			}
			return false
		})
	}
	t.Run("rules", func(t *testing.T) { understands(t, s) })
}

// pauses pauses the election, calls f, and resumes it.
func pauses(t *testing.T, c *memory.Coordinator, f func()) {
	t.Helper()
	b := c.Client("operator")
	defer b.Close()
	op := operate.New(b, "reports", "operator")
	if _, err := op.Pause(t.Context(), "maintenance"); err != nil {
		t.Fatal(err)
	}
	f()
	if _, err := op.Resume(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
}

var labelValues = regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`)

// expressions returns those of the dashboard and of its variables, as Grafana sends them for all elections. Subqueries
// take smaller steps, as a test is over before a step of the dashboard.
func expressions(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Templating struct {
			List []struct{ Name, Type, Definition string }
		}
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	// All is well, so what is asked for elections in trouble is asked for the others.
	fill := strings.NewReplacer("$election", ".*", "$job", ".*", " != 1", " == 1", "$__rate_interval", "10s", "$__range", "1h", ":15s]", ":1s]")
	var all []string
	for _, v := range d.Templating.List {
		if m := labelValues.FindStringSubmatch(v.Definition); m != nil {
			all = append(all, fmt.Sprintf("group by (%s) (%s{%[1]s!=\"\"})", m[2], m[1]))
		} else if v.Type == "query" {
			t.Errorf("the values of $%s come from what this test does not know: %s", v.Name, v.Definition)
		}
	}
	for _, p := range d.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("the panel %q asks nothing", p.Title)
		}
		for _, target := range p.Targets {
			expr := fill.Replace(target.Expr)
			if strings.Contains(expr, "$") {
				t.Errorf("%q has a variable that this test does not know: %s", p.Title, expr)
			}
			all = append(all, expr)
		}
	}
	if len(all) == 0 {
		t.Fatal("the dashboard asks nothing")
	}
	return all
}

// understands fails the test where s cannot evaluate a rule, or has no alert.
func understands(t *testing.T, s *server) {
	evaluated := func() (n int, err error) {
		var all struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
		if err := s.get(t.Context(), "/api/v1/rules", nil, &all); err != nil {
			return 0, err
		}
		for _, g := range all.Groups {
			for _, r := range g.Rules {
				if r.Health == "err" {
					return 0, fmt.Errorf("%s: %s", r.Name, r.LastError)
				}
				if r.Health == "ok" {
					n++
				}
			}
		}
		return n, nil
	}
	want := len(alerts(t))
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		n, err := evaluated()
		if err != nil {
			t.Fatal(err)
		}
		if n == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("Prometheus has evaluated %d rules, want %d", n, want)
		}
	}
}
