// Package prometheus gives the series of a [metrics.Recorder] to a registry of Prometheus' client
// library, for programs that have one:
//
//	m := metrics.New(nil)
//	registry.MustRegister(prometheus.NewCollector(m))
//	e := elect.New(b, "reports", &elect.Options{Trace: m.Trace})
//
// A program that has none needs no library: a Recorder serves its series itself. The series are the
// same either way; package metrics lists them.
package prometheus
