package otel

import (
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/succession-dev/succession/metrics"
)

// Scope is the name of the meter.
const Scope = "github.com/succession-dev/succession/metrics/otel"

// Register makes an instrument of a meter of p for each family of m. The series go on until stop is
// called, which unregisters all. Register does not block. It fails only if p does.
func Register(m *metrics.Recorder, p metric.MeterProvider) (stop func() error, err error) {
	meter := p.Meter(Scope)
	watched := make(map[string]metric.Float64Observable) // by the name of the family
	histograms := make(map[string]metric.Float64Histogram)
	var instruments []metric.Observable
	for _, f := range m.Gather() {
		name, unit := instrument(f.Name)
		var o metric.Float64Observable
		var err error
		switch f.Kind {
		case metrics.Counter:
			o, err = meter.Float64ObservableCounter(name, metric.WithDescription(f.Help), metric.WithUnit(unit))
		case metrics.Gauge:
			o, err = meter.Float64ObservableGauge(name, metric.WithDescription(f.Help), metric.WithUnit(unit))
		default:
			histograms[f.Name], err = meter.Float64Histogram(name, metric.WithDescription(f.Help), metric.WithUnit(unit),
				metric.WithExplicitBucketBoundaries(f.Bounds...))
		}
		if err != nil {
			return nil, fmt.Errorf("otel: instrument %s: %w", name, err)
		}
		if o != nil {
			watched[f.Name] = o
			instruments = append(instruments, o)
		}
	}
	r, err := meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		for _, f := range m.Gather() {
			o := watched[f.Name]
			if o == nil {
				continue
			}
			for _, s := range f.Series {
				to.ObserveFloat64(o, s.Value, metric.WithAttributes(attributes(f.Labels, s.Labels)...))
			}
		}
		return nil
	}, instruments...)
	if err != nil {
		return nil, fmt.Errorf("otel: %w", err)
	}
	forget := m.Observe(func(family string, value float64) { histograms[family].Record(context.Background(), value) })
	return func() error {
		forget()
		return r.Unregister()
	}, nil
}

// instrument returns the name and the unit that OpenTelemetry wants for a family: dots in the place
// of underscores, and neither unit nor kind in the name.
func instrument(family string) (name, unit string) {
	name = strings.TrimSuffix(family, "_total")
	if s, ok := strings.CutSuffix(name, "_seconds"); ok {
		name, unit = s, "s"
	} else if strings.HasSuffix(name, "_ratio") { // which the exporter to Prometheus adds to gauges alone
		unit = "1"
	}
	return strings.ReplaceAll(name, "_", "."), unit
}

func attributes(names, values []string) []attribute.KeyValue {
	kv := make([]attribute.KeyValue, len(names))
	for i, name := range names {
		kv[i] = attribute.String(name, values[i])
	}
	return kv
}
