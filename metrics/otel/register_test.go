package otel_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel/exporters/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/metrics"
	"github.com/succession-dev/succession/metrics/otel"
	"github.com/succession-dev/succession/migrate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// story has something to count of everything.
func story(m *metrics.Recorder) {
	tell := trace.Named("reports", m.Trace)
	member := backend.Member{Line: "reports", Key: "n-7", Position: 7}
	m.MigrationPhase("reports", migrate.Moved)
	tell(trace.Event{Kind: trace.Started})
	tell(trace.Event{Kind: trace.Waiting, Member: member, Err: elect.ErrPaused})
	tell(trace.Event{Kind: trace.SessionOpened, TTL: 10 * time.Second})
	tell(trace.Event{Kind: trace.Retrying, Err: &backend.Error{Op: "join", Err: backend.ErrUnavailable}})
	tell(trace.Event{Kind: trace.Joined, Member: member})
	time.Sleep(3 * time.Millisecond)
	tell(trace.Event{Kind: trace.Elected, Member: member, Token: 7})
	for beat := range 50 {
		tell(trace.Event{Kind: trace.Heartbeat, RoundTrip: time.Duration(beat*beat) * 5 * time.Millisecond, TTL: 50 * time.Second, Slack: time.Duration(beat) * time.Second})
	}
	tell(trace.Event{Kind: trace.Ended, Member: member, Err: backend.ErrSessionEnded})
	time.Sleep(time.Second / 3)
}

// A reader gets every family under OpenTelemetry's name, with the attributes and values of the
// recorder; and nothing when the registration has ended.
func TestRegister(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := sdk.NewManualReader()
		provider := sdk.NewMeterProvider(sdk.WithReader(reader))
		m := metrics.New(nil)
		stop, err := otel.Register(m, provider)
		if err != nil {
			t.Fatal(err)
		}
		story(m)
		units := map[string]string{
			"succession.leader": "", "succession.term.token": "", "succession.terms": "", "succession.overdue": "s",
			"succession.session": "s", "succession.session.slack.ratio": "1", "succession.heartbeat": "s", "succession.campaign": "s",
			"succession.retries": "", "succession.migration.phase": "", "succession.in.line": "", "succession.paused": "",
			"succession.build.info": "",
		}
		got := collect(t, reader)
		for _, s := range got {
			if unit, ok := units[s.Name]; !ok || s.Unit != unit || s.Description == "" {
				t.Errorf("instrument %q has the unit %q and the description %q", s.Name, s.Unit, s.Description)
			}
			delete(units, s.Name)
		}
		if len(units) > 0 {
			t.Errorf("these instruments are missing: %v", units)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		m.Trace(trace.Event{Election: "reports", Kind: trace.Heartbeat, RoundTrip: time.Hour})
		for _, s := range collect(t, reader) {
			if h, ok := s.Data.(metricdata.Histogram[float64]); !ok {
				t.Errorf("after stop there is %s", s.Name)
			} else if h.DataPoints[0].Sum > 3600 && s.Name == "succession.heartbeat" {
				t.Error("after stop a heartbeat was counted")
			}
		}
		if err := provider.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func collect(t *testing.T, reader sdk.Reader) []metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	if len(all.ScopeMetrics) == 0 {
		return nil
	}
	if len(all.ScopeMetrics) > 1 || all.ScopeMetrics[0].Scope.Name != otel.Scope {
		t.Fatalf("the scopes are %v", all.ScopeMetrics)
	}
	return all.ScopeMetrics[0].Metrics
}

// OpenTelemetry's exporter to Prometheus makes the same series as the recorder itself, so that one
// dashboard is for both.
func TestSameByTheExporter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := client.NewRegistry()
		exporter, err := prometheus.New(prometheus.WithRegisterer(registry), prometheus.WithoutScopeInfo(), prometheus.WithoutTargetInfo(),
			prometheus.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes))
		if err != nil {
			t.Fatal(err)
		}
		provider := sdk.NewMeterProvider(sdk.WithReader(exporter))
		m := metrics.New(&metrics.Options{MasterStatus: true})
		if _, err := otel.Register(m, provider); err != nil {
			t.Fatal(err)
		}
		story(m)
		got, want := exported(t, registry), recorded(m)
		if !slices.Equal(got, want) {
			t.Errorf("the exporter has\n%s\nthe recorder has\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if err := provider.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// exported returns a line for each series of the registry, in order.
func exported(t *testing.T, registry *client.Registry) []string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range families {
		for _, s := range f.GetMetric() {
			line := f.GetName()
			for _, l := range s.GetLabel() {
				line += " " + l.GetName() + "=" + l.GetValue()
			}
			switch h := s.GetHistogram(); {
			case s.GetCounter() != nil:
				line += fmt.Sprint(" counter ", s.GetCounter().GetValue())
			case s.GetGauge() != nil:
				line += fmt.Sprint(" gauge ", s.GetGauge().GetValue())
			case h != nil:
				line += fmt.Sprintf(" histogram %.6f", h.GetSampleSum())
				for _, b := range h.GetBucket() {
					line += fmt.Sprint(" ", b.GetUpperBound(), ":", b.GetCumulativeCount())
				}
			}
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}

// recorded is exported for a recorder.
func recorded(m *metrics.Recorder) []string {
	var lines []string
	for _, f := range m.Gather() {
		for _, s := range f.Series {
			line := f.Name
			for i, name := range f.Labels {
				line += " " + name + "=" + s.Labels[i]
			}
			if s.Histogram == nil {
				lines = append(lines, fmt.Sprint(line, " ", f.Kind, " ", s.Value))
				continue
			}
			line += fmt.Sprintf(" histogram %.6f", s.Histogram.Sum)
			n := uint64(0)
			for i, bound := range f.Bounds {
				n += s.Histogram.Counts[i]
				line += fmt.Sprint(" ", bound, ":", n)
			}
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}
