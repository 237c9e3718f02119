package faults

import (
	"slices"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/internal/history"
)

// candidates is how many candidates stand in a scenario.
const candidates = 5

// A scenario is what all rules of the group Fault have in common. Candidates lead in turn,
// something happens, they lead in turn again, and all end cleanly. Then their history is
// judged.
type scenario struct {
	*engine.Trial
	*engine.Race
	of      row
	clients []*engine.Client
	process *engine.ProcessCandidate // the candidate in a process of its own; nil for none
	watcher *engine.Client
	seen    *engine.Observer
}

// check returns the check of a rule: the scenario with that row.
func check(d row) func(*engine.Trial) {
	return func(t *engine.Trial) {
		left := t.Started(func() {
			s := &scenario{Trial: t, Race: t.NewRace(), of: d}
			s.begin()
			s.everyone("before the fault")
			d.happens(s)
			s.everyone("after the fault")
			s.end()
		})
		left.End("goroutines are left after all clients were closed")
	}
}

// begin says how the history is judged, and makes the candidates join, one after the other. Every
// other candidate looks only at the context of its term to notice the end ([engine.Manner]).
func (s *scenario) begin() {
	rules := history.Rules{Vacancy: s.of.vacancy(s.Trial)}
	if s.of.notice != nil {
		rules.Notice = s.of.notice(s.Trial)
	}
	s.Judged(rules, s.of.forgives...)
	n := candidates
	if s.of.process {
		n--
	}
	for range n {
		s.joins()
	}
	if s.of.process {
		s.process = s.EnterProcess("p")
	}
	s.watches()
}

// watches opens a client that observes.
func (s *scenario) watches() {
	s.watcher = s.Client()
	s.seen = s.watcher.Observe(s.Ctx)
}

// joins opens a client, and waits until it has joined the line.
func (s *scenario) joins() { s.enters(s.Client()) }

// enters makes a client a candidate, and waits until it has joined the line.
func (s *scenario) enters(c *engine.Client) {
	joined := s.Enter(c, engine.Manner{Heeds: len(s.clients)%2 == 1, Margin: s.TTL / 10})
	s.clients = append(s.clients, c)
	engine.Await(s.Trial, joined, s.Recovery(), c.Name+" has not joined")
}

// everyone waits until each candidate has led at least once from now on, so that none is stuck.
// It makes leaders resign until then. It bounds the time and not the number of terms:
// candidates that have recovered hand over in milliseconds, while another still looks for its
// server.
func (s *scenario) everyone(when string) {
	led := make(map[string]bool)
	bound := 2 * s.Recovery()
	end := time.Now().Add(bound)
	for g := s.leads(); ; g = s.after(g) {
		s.Pass(s.TTL/20, "while "+g.Who+" leads")
		led[g.Who] = true
		missing := s.missing(led)
		switch {
		case missing == nil:
			return
		case time.Now().After(end):
			s.Fatalf("%s has not led within %v %s", strings.Join(missing, " and "), bound, when)
		}
		g.Resign()
	}
}

// missing returns the candidates that have not led.
func (s *scenario) missing(led map[string]bool) []string {
	var out []string
	for _, c := range s.clients {
		if !led[c.Name] && !c.Killed() {
			out = append(out, c.Name)
		}
	}
	if s.process != nil && !s.process.Killed() && !led[s.process.ID] {
		out = append(out, s.process.ID)
	}
	return out
}

// end makes all candidates resign. Then nobody may stand in line, and all
// clients must close.
func (s *scenario) end() {
	s.Stop()
	s.watcher.Shows(s.Crash())
	for _, c := range s.clients {
		if err := c.Close(); err != nil && !c.Killed() {
			s.Fatalf("%s: Close: %v", c.Name, err)
		}
	}
	s.watcher.Shows(s.Soon())
	s.seen.Ordered()
	s.watcher.Closes()
}

// lasts is how long a fault lasts: long enough for a session to end.
func (s *scenario) lasts() time.Duration { return (s.TTL + s.Slack) * 5 / 4 }

// leads waits until somebody leads, and returns the newest term.
func (s *scenario) leads() *engine.Term { return s.Leader(0, s.Recovery()) }

// after waits until somebody leads with a larger token than g.
func (s *scenario) after(g *engine.Term) *engine.Term { return s.Leader(g.Token, s.Recovery()) }

// until makes leaders resign until wanted is true of one. It returns nil if it is of none, in two
// rounds.
func (s *scenario) until(wanted func(g *engine.Term) bool) *engine.Term {
	g := s.leads()
	for range 2 * candidates {
		if wanted(g) {
			return g
		}
		g.Resign()
		g = s.after(g)
	}
	return nil
}

// isProcess reports whether the process leads.
func (s *scenario) isProcess(g *engine.Term) bool { return g.Who == s.process.ID }

// inLine waits until all candidates stand in line. It returns the client at that index in the
// line, and its member.
func (s *scenario) inLine(place int) (c *engine.Client, m backend.Member) {
	s.Eventually(s.Recovery(), "all candidates stand in line", func() bool {
		line := s.watcher.Members()
		if len(line) != candidates {
			return false
		}
		m = line[place]
		i := slices.IndexFunc(s.clients, func(c *engine.Client) bool { return c.Name == s.Owner(m) })
		if i >= 0 {
			c = s.clients[i]
		}
		return i >= 0
	})
	return c, m
}
