package page

import (
	"slices"
	"sync"
	"time"

	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/history"
)

const (
	// maxEvents is how many events of one election are kept: the newest, two for each term.
	maxEvents = 400
	// maxGaps is how many times in which nothing was seen are kept.
	maxGaps = 100
)

// The kinds of times in which nothing was seen.
const (
	unreached = "not reached" // the coordinator did not answer
	unwatched = "not watched" // nobody looked at the page
)

// A past is who led when, in all elections, as far as somebody has looked. It is safe for
// concurrent use.
type past struct {
	begin time.Time

	mu   sync.Mutex
	of   map[string]*notes // by election
	gaps []history.Fault   // for all elections
	open string            // the kind of the gap that has not ended; "" is none
}

// notes are what was seen of one election.
type notes struct {
	first   time.Duration // when it was seen first
	events  []history.Event
	leader  elect.Leader // of the newest term in events
	doubted uint64       // a token smaller than an earlier one that was seen once
}

func newPast() *past { return &past{begin: time.Now(), of: make(map[string]*notes)} }

// saw notes who leads the election. asked says that this leader has been asked to resign.
func (p *past) saw(election string, now elect.State, asked bool) {
	l := now.Leader
	p.mu.Lock()
	defer p.mu.Unlock()
	at := time.Since(p.begin)
	n := p.of[election]
	if n == nil {
		n = &notes{first: at}
		p.of[election] = n
	}
	last := history.Event{Kind: history.Ended}
	if len(n.events) > 0 {
		last = n.events[len(n.events)-1]
	}
	switch {
	case l.Token != 0 && l.Token < last.Token && l.Token != n.doubted:
		// A server that lags behind may show an earlier leader. If the next look shows the same,
		// tokens have fallen.
		n.doubted = l.Token
		return
	case last.Kind == history.Won && SameTerm(n.leader, l):
		if asked {
			n.events[len(n.events)-1].Why = "asked to resign"
		}
		return
	}
	n.doubted = 0
	if last.Kind == history.Won {
		n.note(history.Event{At: at, Kind: history.Ended, Election: election, Candidate: last.Candidate, Token: last.Token, Why: last.Why})
	}
	if !now.Vacant() && l.Token != last.Token {
		n.leader = l
		n.note(history.Event{At: at, Kind: history.Won, Election: election, Candidate: ui.Clip(nameOf(l.Candidate)), Token: l.Token})
	}
}

// note adds an event, and drops the oldest if there are too many.
func (n *notes) note(e history.Event) {
	n.events = append(slices.Clone(n.events[max(0, len(n.events)-maxEvents+1):]), e)
}

// SameTerm reports whether both lead by the same term. A token grows while its term lasts if the fence is raised, and a move to another
// coordinator gives a leader another place with the same token.
func SameTerm(a, b elect.Leader) bool {
	return a.Token == b.Token || a.Key == b.Key && a.Position == b.Position
}

// nameOf returns who it is.
func nameOf(l elect.Candidate) string { return ui.NameOf(l.ID, l.Key) }

// blind notes that nothing is seen since an instant, and why; "" ends that.
func (p *past) blind(kind string, since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if kind == p.open {
		return
	}
	now := since.Sub(p.begin)
	if p.open != "" {
		p.gaps[len(p.gaps)-1].To = now
	}
	if p.open = kind; kind != "" {
		p.gaps = append(p.gaps[max(0, len(p.gaps)-maxGaps+1):], history.Fault{Kind: kind, From: now})
	}
}

// history returns what is known of an election up to now, and since when.
func (p *past) history(election string) (h *history.History, since time.Duration, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h = new(history.History)
	n := p.of[election]
	if n == nil {
		return h, time.Since(p.begin), p.open != ""
	}
	h.Events = slices.Clone(n.events)
	for i, g := range p.gaps {
		if p.open != "" && i == len(p.gaps)-1 {
			g.To = time.Since(p.begin)
		}
		if g.To > n.first {
			g.From = max(g.From, n.first)
			h.Faults = append(h.Faults, g)
		}
	}
	return h, n.first, p.open != ""
}

// forget drops an election of which nothing is shown any more.
func (p *past) forget(election string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, election)
}
