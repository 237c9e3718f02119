package metrics

import (
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/metrics/internal/candidacy"
	"github.com/succession-dev/succession/migrate"
)

// Options are the optional settings of a [Recorder]. Nil and the zero value mean the defaults.
type Options struct {
	// MasterStatus also exports leader_election_master_status{name}, which is
	// succession_leader under the name that it has in client-go, for dashboards that look for
	// that. Leave it out where the series go into a registry that has client-go's own gauge, which
	// refuses a second one: that of controller-runtime has it in every program.
	MasterStatus bool
}

// A Recorder counts what the elections of a process do. It has no goroutine and nothing to close,
// and is safe for concurrent use. It is an [http.Handler]; see [Recorder.ServeHTTP].
type Recorder struct {
	o Options

	mu        sync.Mutex
	elections map[string]*election
	process   process
	observers map[*func(family string, value float64)]bool
}

// New returns a recorder that has counted nothing.
func New(o *Options) *Recorder {
	r := &Recorder{
		elections: make(map[string]*election),
		process:   process{retries: make(map[string]uint64), overdue: make(map[place]time.Time)},
		observers: make(map[*func(string, float64)]bool),
	}
	if o != nil {
		r.o = *o
	}
	return r
}

// An election is what a recorder knows of one election.
type election struct {
	recipe    string // which recipe it is a part of; empty if none
	elects    bool   // it is an election too, of the same name
	candidacy candidacy.State
	leading   int            // terms that this process has now
	token     uint64         // the largest token so far
	terms     map[end]uint64 // terms that have ended
	phase     migrate.Phase  // empty if it was never set

	joined map[place]time.Time // since when a member that does not lead stands in line
	paused map[place]bool      // the members that wait behind the gate of a pause; nil if none ever has
}

// A process is what a recorder knows of all elections together. Sessions are shared by elections.
type process struct {
	ttl      time.Duration // of the newest session
	retries  map[string]uint64
	overdue  map[place]time.Time // when each term ended whose work may go on
	slack    Histogram
	beats    Histogram
	campaign Histogram
	heard    [64]uint64 // the numbers of the newest heartbeats, each at its remainder by 64
}

// hears reports whether a heartbeat is new. All elections of a session trace the same heartbeats.
func (p *process) hears(number uint64) bool {
	seen := &p.heard[number%uint64(len(p.heard))]
	if number != 0 && *seen >= number {
		return false
	}
	*seen = number
	return true
}

// A place tells one member from all others.
type place struct {
	line, key string
	position  uint64
}

func placeOf(m backend.Member) place { return place{m.Line, m.Key, m.Position} }

func newElection() *election {
	return &election{
		terms:  make(map[end]uint64),
		joined: make(map[place]time.Time),
	}
}

// of returns what r knows of the election with the name. The caller has locked r.
func (r *Recorder) of(name string) *election {
	e := r.elections[name]
	if e == nil {
		e = newElection()
		r.elections[name] = e
	}
	return e
}

// Forget removes the series of an election, for a process that takes part in new elections again
// and again. Call it when no campaign of the election is under way, because the next step of a
// campaign brings the series back.
func (r *Recorder) Forget(election string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.elections, election)
}

// Observe calls f with each value that goes into a histogram from now on, with the name of the
// family, such as succession_heartbeat_seconds. It is for adapters whose histograms take values one
// by one. f must not block, must be safe for concurrent use, and must not call r. stop ends that; a
// call that has begun may end after stop.
func (r *Recorder) Observe(f func(family string, value float64)) (stop func()) {
	key := &f
	r.mu.Lock()
	defer r.mu.Unlock()
	r.observers[key] = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.observers, key)
	}
}
