package prometheus

import (
	client "github.com/prometheus/client_golang/prometheus"

	"github.com/succession-dev/succession/metrics"
)

// A Collector is a [metrics.Recorder] as a collector of Prometheus' client library. It is safe for
// concurrent use.
type Collector struct {
	recorder *metrics.Recorder
	descs    map[string]*client.Desc // by the name of the family
}

var _ client.Collector = (*Collector)(nil)

// NewCollector returns a collector of what m has counted. Register it with any number of registries.
func NewCollector(m *metrics.Recorder) *Collector {
	c := &Collector{recorder: m, descs: make(map[string]*client.Desc)}
	for _, f := range m.Gather() {
		c.descs[f.Name] = client.NewDesc(f.Name, f.Help, f.Labels, nil)
	}
	return c
}

// Describe sends the description of each family.
func (c *Collector) Describe(ch chan<- *client.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
}

// Collect sends all series, as they are at the moment of the call.
func (c *Collector) Collect(ch chan<- client.Metric) {
	for _, f := range c.recorder.Gather() {
		d := c.descs[f.Name]
		for _, s := range f.Series {
			m, err := metric(d, f, s)
			if err != nil { // a name that is not UTF-8, which no election can have
				m = client.NewInvalidMetric(d, err)
			}
			ch <- m
		}
	}
}

// metric returns s, which is of f, as the client library has it.
func metric(d *client.Desc, f metrics.Family, s metrics.Series) (client.Metric, error) {
	switch f.Kind {
	case metrics.Counter:
		return client.NewConstMetric(d, client.CounterValue, s.Value, s.Labels...)
	case metrics.Gauge:
		return client.NewConstMetric(d, client.GaugeValue, s.Value, s.Labels...)
	}
	buckets, count := make(map[float64]uint64), uint64(0)
	for i, bound := range f.Bounds {
		count += s.Histogram.Counts[i]
		buckets[bound] = count
	}
	return client.NewConstHistogram(d, s.Histogram.Count(), s.Histogram.Sum, buckets, s.Labels...)
}
