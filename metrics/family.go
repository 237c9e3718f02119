package metrics

import (
	"maps"
	"slices"
	"time"
)

// A Kind says how to read the values of a [Family].
type Kind int

const (
	Counter       Kind = iota + 1 // grows, and begins at 0 with the process
	Gauge                         // is what it is now
	HistogramKind                 // has a [Histogram] and no value
)

// String returns the kind as Prometheus names it.
func (k Kind) String() string {
	switch k {
	case Counter:
		return "counter"
	case Gauge:
		return "gauge"
	case HistogramKind:
		return "histogram"
	}
	return "untyped"
}

// A Family is one metric with all its series. Times are in seconds.
type Family struct {
	Name   string
	Help   string // one line
	Kind   Kind
	Labels []string // the names of the labels
	// Bounds are the upper bounds of a histogram's buckets, in order. Do not change them.
	Bounds []float64
	Series []Series // by the values of the labels
}

// A Series is the value of a metric for one set of labels.
type Series struct {
	Labels    []string   // the values, in the order of the names
	Value     float64    // of a counter or a gauge
	Histogram *Histogram // of a histogram
}

// The names of the histograms, which trace needs.
const (
	slackSeconds     = "succession_session_slack_seconds"
	heartbeatSeconds = "succession_heartbeat_seconds"
	campaignSeconds  = "succession_campaign_seconds"
)

// A definition is a family, and what its series of one election are. The value of the label election
// is not among those that add is given.
type definition struct {
	Family
	read func(e *election, add func(value float64, labels ...string))
	hist func(e *election) *Histogram // of a histogram, in the place of read
}

// definitions are all families, in the order in which they are exported.
var definitions = []definition{
	{Family: Family{Name: "succession_leader", Kind: Gauge, Labels: []string{"election"},
		Help: "1 while this process leads the election, else 0."}, read: leader},
	{Family: Family{Name: "succession_term_token", Kind: Gauge, Labels: []string{"election"},
		Help: "The token of the newest term of this process; 0 before the first."},
		read: func(e *election, add func(float64, ...string)) { add(float64(e.token)) }},
	{Family: Family{Name: "succession_terms_total", Kind: Counter, Labels: []string{"election", "end"},
		Help: "Terms of this process that have ended, by how."}, read: terms},
	{Family: Family{Name: "succession_overdue_seconds", Kind: Gauge, Labels: []string{"election"},
		Help: "How long work of this process has gone on after the end of its term; 0 if none does."}, read: overdue},
	{Family: Family{Name: "succession_session_seconds", Kind: Gauge, Labels: []string{"election"},
		Help: "The session time of this process; 0 if its sessions have none."},
		read: func(e *election, add func(float64, ...string)) { add(e.ttl.Seconds()) }},
	{Family: Family{Name: slackSeconds, Kind: HistogramKind, Labels: []string{"election"}, Bounds: slackBounds,
		Help: "How far ahead the session's deadline was when a confirmation moved it; 0 if it had passed."},
		hist: func(e *election) *Histogram { return &e.slack }},
	{Family: Family{Name: heartbeatSeconds, Kind: HistogramKind, Labels: []string{"election"}, Bounds: heartbeatBounds,
		Help: "How long the coordinator took to confirm the session."},
		hist: func(e *election) *Histogram { return &e.beats }},
	{Family: Family{Name: campaignSeconds, Kind: HistogramKind, Labels: []string{"election"}, Bounds: campaignBounds,
		Help: "The time from joining the line to leading."},
		hist: func(e *election) *Histogram { return &e.campaign }},
	{Family: Family{Name: "succession_retries_total", Kind: Counter, Labels: []string{"election", "op"},
		Help: "Failures that may pass by themselves, by the operation that failed."}, read: retries},
	{Family: Family{Name: "succession_migration_phase", Kind: Gauge, Labels: []string{"election", "phase"},
		Help: "1 for the phase that the migration of the election is in, 0 for the others."}, read: phase},
}

// masterStatus is the gauge of client-go.
var masterStatus = definition{Family: Family{Name: "leader_election_master_status", Kind: Gauge, Labels: []string{"name"},
	Help: "1 while this process leads the election, else 0; succession_leader under the name of client-go."}, read: leader}

func leader(e *election, add func(float64, ...string)) { add(float64(e.leading)) }

// terms adds a series for each end, as a counter that begins with its first event hides that.
func terms(e *election, add func(float64, ...string)) {
	for _, x := range ends {
		add(float64(e.terms[x.end]), string(x.end))
	}
	add(float64(e.terms[stopped]), string(stopped))
}

func overdue(e *election, add func(float64, ...string)) {
	longest := time.Duration(0)
	for _, since := range e.overdue {
		longest = max(longest, time.Since(since))
	}
	add(longest.Seconds())
}

func retries(e *election, add func(float64, ...string)) {
	for op, n := range e.retries {
		add(float64(n), op)
	}
}

// Gather returns all families, also those without a series, as they are at the moment of the call.
// The caller owns the result. It is for adapters; it does not block.
func (r *Recorder) Gather() []Family {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := slices.Sorted(maps.Keys(r.elections))
	all := definitions
	if r.o.MasterStatus {
		all = append(slices.Clip(all), masterStatus)
	}
	families := make([]Family, len(all))
	for i, d := range all {
		f := d.Family
		f.Labels = slices.Clone(f.Labels)
		for _, name := range names {
			e := r.elections[name]
			if d.hist != nil {
				f.Series = append(f.Series, Series{Labels: []string{name}, Histogram: d.hist(e).copy(f.Bounds)})
				continue
			}
			d.read(e, func(value float64, labels ...string) {
				f.Series = append(f.Series, Series{Labels: append([]string{name}, labels...), Value: value})
			})
		}
		slices.SortFunc(f.Series, func(a, b Series) int { return slices.Compare(a.Labels, b.Labels) })
		families[i] = f
	}
	return families
}
