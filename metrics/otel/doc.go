// Package otel gives the series of a [metrics.Recorder] to a meter of OpenTelemetry's metric API:
//
//	m := metrics.New(nil)
//	stop, err := otel.Register(m, provider)
//	...
//	e := elect.New(b, "reports", &elect.Options{Trace: m.Trace})
//
// The instruments have OpenTelemetry's names and units, and the attributes are the labels of package
// metrics: succession.leader, succession.term.token, succession.terms, succession.session.slack.ratio,
// and so on. OpenTelemetry's exporter to Prometheus makes the names of package metrics of
// them again, with the translation strategy UnderscoreEscapingWithSuffixes.
//
// Gauges and counters are read when the reader collects. Histograms get each value at once, as the
// API has no histograms that are read; so they begin with Register.
package otel
