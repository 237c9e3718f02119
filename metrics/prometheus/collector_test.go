package prometheus_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.uber.org/goleak"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/metrics"
	"github.com/succession-dev/succession/metrics/prometheus"
	"github.com/succession-dev/succession/migrate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What a recorder writes is what Prometheus' own parser reads, and the same as what a registry has of
// its collector: each family with its help and kind, and each series with its value.
func TestSameAsText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := metrics.New(&metrics.Options{MasterStatus: true})
		story(m)
		var text bytes.Buffer
		m.WriteTo(&text)
		parser := expfmt.NewTextParser(model.UTF8Validation)
		written, err := parser.TextToMetricFamilies(&text)
		if err != nil {
			t.Fatalf("the text cannot be read: %v", err)
		}
		registry := client.NewPedanticRegistry()
		registry.MustRegister(prometheus.NewCollector(m))
		collected, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got, want := flat(maps.Values(written)), flat(slices.Values(collected))
		for key := range maps.Keys(want) {
			if _, ok := got[key]; !ok {
				t.Errorf("the text has no %s, which the collector has", key)
			}
		}
		for key, v := range got {
			if w, ok := want[key]; !ok || w != v {
				t.Errorf("in the text, %s is %q; of the collector it is %q (%v)", key, v, w, ok)
			}
		}
		if len(got) < 100 {
			t.Errorf("the text has %d series; has the story become so short?", len(got))
		}
	})
}

// story has something to count of everything.
func story(m *metrics.Recorder) {
	for i, name := range []string{"reports", "a \"quoted\"\nname with \\ in it"} {
		tell := trace.Named(name, m.Trace)
		member := backend.Member{Line: name, Key: "n-7", Position: 7}
		m.Trace(trace.Event{Election: name + "lock", Recipe: "lock", Kind: trace.Started})
		tell(trace.Event{Kind: trace.Started})
		tell(trace.Event{Kind: trace.Waiting, Member: member, Err: elect.ErrPaused})
		m.MigrationPhase(name, migrate.Moved)
		tell(trace.Event{Kind: trace.SessionOpened, TTL: 10 * time.Second})
		tell(trace.Event{Kind: trace.Retrying, Err: &backend.Error{Op: "watch place", Err: backend.ErrUnavailable}})
		tell(trace.Event{Kind: trace.Joined, Member: member})
		time.Sleep(time.Duration(i+1) * time.Millisecond)
		tell(trace.Event{Kind: trace.Elected, Member: member, Token: 1<<53 - 1})
		for beat := range 50 {
			tell(trace.Event{Kind: trace.Heartbeat, RoundTrip: time.Duration(beat*beat) * 5 * time.Millisecond, TTL: 50 * time.Second, Slack: time.Duration(beat) * time.Second})
		}
		tell(trace.Event{Kind: trace.Ended, Member: member, Err: backend.ErrSessionEnded})
		time.Sleep(time.Second / 3)
	}
}

// flat returns all that the families say, by family or series.
func flat(families func(yield func(*dto.MetricFamily) bool)) map[string]string {
	all := make(map[string]string)
	for f := range families {
		all["# "+f.GetName()] = f.GetType().String() + " " + f.GetHelp()
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			slices.Sort(labels)
			key := f.GetName() + "{" + strings.Join(labels, ",") + "}"
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				all[key] = fmt.Sprint(m.GetCounter().GetValue())
			case dto.MetricType_GAUGE:
				all[key] = fmt.Sprint(m.GetGauge().GetValue())
			case dto.MetricType_HISTOGRAM:
				h := m.GetHistogram()
				all[key] = fmt.Sprint(h.GetSampleCount(), h.GetSampleSum())
				for _, b := range h.GetBucket() {
					if le := b.GetUpperBound(); le <= 1e300 { // that without a bound is the count
						all[fmt.Sprint(key, " le ", le)] = fmt.Sprint(b.GetCumulativeCount())
					}
				}
			}
		}
	}
	return all
}

func ExampleNewCollector() {
	m := metrics.New(nil)
	registry := client.NewRegistry()
	registry.MustRegister(prometheus.NewCollector(m))

	m.Trace(trace.Event{Election: "reports", Kind: trace.SessionOpened}) // for elect.Options
	families, _ := registry.Gather()
	for _, f := range families {
		if f.GetName() == "succession_leader" {
			fmt.Println(f.GetName(), f.GetMetric()[0].GetGauge().GetValue())
		}
	}
	// Output: succession_leader 0
}
