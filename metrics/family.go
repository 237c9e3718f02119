package metrics

import (
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
)

// A Kind says how to read the values of a [Family].
type Kind int

const (
	Counter       Kind = iota + 1 // grows, and begins at 0 with the process
	Gauge                         // the present value
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
	slackRatio       = "succession_session_slack_ratio"
	heartbeatSeconds = "succession_heartbeat_seconds"
	campaignSeconds  = "succession_campaign_seconds"
)

// A definition is a family, with one of three funcs that make its series. A family of elections has
// the label election first, which the funcs do not pass to add.
type definition struct {
	Family
	election func(e *election, add func(value float64, labels ...string))
	process  func(p *process, add func(value float64, labels ...string))
	hist     func(p *process) *Histogram
}

// definitions are all families, in the order in which they are exported.
var definitions = []definition{
	{Family: Family{Name: "succession_leader", Kind: Gauge, Labels: []string{"election"},
		Help: "1 while this process leads the election, else 0."}, election: leader},
	{Family: Family{Name: "succession_in_line", Kind: Gauge, Labels: []string{"election"},
		Help: "1 while this process stands in line or leads, 0 while it tries to or its campaign has failed; absent while it does not campaign."}, election: inLine},
	{Family: Family{Name: "succession_term_token", Kind: Gauge, Labels: []string{"election"},
		Help: "The token of the newest term of this process; 0 before the first."},
		election: func(e *election, add func(float64, ...string)) { add(float64(e.token)) }},
	{Family: Family{Name: "succession_terms_total", Kind: Counter, Labels: []string{"election", "end"},
		Help: "Terms of this process that have ended, by how."}, election: terms},
	{Family: Family{Name: "succession_paused", Kind: Gauge, Labels: []string{"election"},
		Help: "1 while this process waits behind the gate of a pause, else 0; absent before it has done so."}, election: paused},
	{Family: Family{Name: "succession_migration_phase", Kind: Gauge, Labels: []string{"election", "phase"},
		Help: "1 for the phase that the migration of the election is in, 0 for the others."}, election: phase},
	{Family: Family{Name: "succession_recipe", Kind: Gauge, Labels: []string{"election", "recipe"},
		Help: "1 if the name is that of a recipe, such as a lock or a queue; absent if it is an election, which always has one leader."},
		election: recipe},
	{Family: Family{Name: campaignSeconds, Kind: HistogramKind, Bounds: campaignBounds,
		Help: "The time from joining the line to leading."},
		hist: func(p *process) *Histogram { return &p.campaign }},
	{Family: Family{Name: "succession_retries_total", Kind: Counter, Labels: []string{"op"},
		Help: "Failures that may pass by themselves, by the operation that failed."}, process: retries},
	{Family: Family{Name: "succession_overdue_seconds", Kind: Gauge,
		Help: "For how long at most work of this process has gone on after the end of its term; 0 if none does."}, process: overdue},
	{Family: Family{Name: "succession_session_seconds", Kind: Gauge,
		Help: "The session time of the newest session of this process; 0 if its sessions have none."},
		process: func(p *process, add func(float64, ...string)) { add(p.ttl.Seconds()) }},
	{Family: Family{Name: slackRatio, Kind: HistogramKind, Bounds: slackBounds,
		Help: "How far ahead the session's deadline was when a confirmation moved it, as a part of the session time; 0 if it had passed."},
		hist: func(p *process) *Histogram { return &p.slack }},
	{Family: Family{Name: heartbeatSeconds, Kind: HistogramKind, Bounds: heartbeatBounds,
		Help: "How long the coordinator took to confirm the session."},
		hist: func(p *process) *Histogram { return &p.beats }},
	{Family: Family{Name: "succession_build_info", Kind: Gauge, Labels: []string{"format", "version"},
		Help: "1; the version of this library, and the number of the format of headers that it reads and writes."}, process: buildInfo},
}

// masterStatus is the gauge of client-go.
var masterStatus = definition{Family: Family{Name: "leader_election_master_status", Kind: Gauge, Labels: []string{"name"},
	Help: "1 while this process leads the election, else 0; succession_leader under the name of client-go."}, election: leader}

func leader(e *election, add func(float64, ...string)) { add(float64(e.leading)) }

// terms adds a series for each end, also with 0: a counter that begins with its first event hides
// that event.
func terms(e *election, add func(float64, ...string)) {
	for _, x := range ends {
		add(float64(e.terms[x.end]), string(x.end))
	}
	add(float64(e.terms[stopped]), string(stopped))
}

func inLine(e *election, add func(float64, ...string)) {
	if e.candidacy.Wants() {
		add(float64(e.candidacy.Standing()))
	}
}

func paused(e *election, add func(float64, ...string)) {
	if e.paused != nil {
		add(one(len(e.paused) > 0))
	}
}

func recipe(e *election, add func(float64, ...string)) {
	if e.recipe != "" && !e.elects {
		add(1, e.recipe)
	}
}

// one is 1 for true, and 0 for false.
func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func overdue(p *process, add func(float64, ...string)) {
	longest := time.Duration(0)
	for _, since := range p.overdue {
		longest = max(longest, time.Since(since))
	}
	add(longest.Seconds())
}

// retries adds series for the operations that fail when the coordinator cannot be reached, also
// before one has failed, for the reason that terms has.
func retries(p *process, add func(float64, ...string)) {
	for _, op := range []string{"session", "join"} {
		if p.retries[op] == 0 {
			add(0, op)
		}
	}
	for op, n := range p.retries {
		add(float64(n), op)
	}
}

func buildInfo(_ *process, add func(float64, ...string)) {
	add(1, strconv.Itoa(backend.HeaderFormat), version())
}

// version is the version of this library in the program. It is "(devel)" if the program was not
// built with a released version.
var version = sync.OnceValue(func() string {
	const module = "github.com/succession-dev/succession"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == module && m.Version != "" {
			return m.Version
		}
	}
	return "(devel)"
})

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
		add := func(value float64, labels ...string) {
			f.Series = append(f.Series, Series{Labels: labels, Value: value})
		}
		switch {
		case d.hist != nil:
			f.Series = []Series{{Histogram: d.hist(&r.process).copy(f.Bounds)}}
		case d.process != nil:
			d.process(&r.process, add)
		default:
			for _, name := range names {
				d.election(r.elections[name], func(value float64, labels ...string) {
					add(value, append([]string{name}, labels...)...)
				})
			}
		}
		slices.SortFunc(f.Series, func(a, b Series) int { return slices.Compare(a.Labels, b.Labels) })
		families[i] = f
	}
	return families
}
