package conformance

import (
	"slices"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/history"
)

// cast is how many candidates stand in a story.
const cast = 5

// A story is what all rules of the group Fault have in common: candidates lead in
// turn, something happens, they lead in turn again, and end cleanly. The history is
// judged at the end.
type story struct {
	*race
	of      disturbance
	clients []*client
	process *process // the candidate in a process of its own; nil for none
	watcher *client
	seen    *observer
}

// tells returns the check of a rule with that disturbance.
func tells(d disturbance) func(*trial) {
	return func(t *trial) {
		left := t.labelled(func() {
			s := &story{race: t.newRace(), of: d}
			s.begin()
			s.everyone("before the fault")
			d.happens(s)
			s.everyone("after the fault")
			s.end()
		})
		t.nobodyLeft(left, "goroutines are left after all clients were closed")
	}
}

// begin has the candidates stand in line, one after the other. Every other one finds
// out about the end of its term by its context alone.
func (s *story) begin() {
	n := cast
	if s.of.process {
		n--
	}
	for range n {
		s.joins()
	}
	if s.of.process {
		s.process = s.enterProcess("p")
	}
	s.watches()
}

// watches opens a client that observes.
func (s *story) watches() {
	s.watcher = s.t.client()
	s.seen = s.watcher.observes(s.t.ctx)
}

// joins opens a client and has it stand in line.
func (s *story) joins() {
	c := s.t.client()
	w := watch{heeds: len(s.clients)%2 == 1, margin: s.t.h.TTL / 10}
	joined := s.enter(c, w, 0)
	s.clients = append(s.clients, c)
	await(s.t, joined, s.t.h.recovery(), c.name+" has not joined")
}

// everyone has each candidate lead at least once, from now on, for a while. Nobody may
// be stuck. How many terms that takes is not said: those who are back already hand over
// in milliseconds, while the last one still looks for its server.
func (s *story) everyone(when string) {
	led := make(map[string]bool)
	bound := 2 * s.t.h.recovery()
	end := time.Now().Add(bound)
	for g := s.leads(); ; g = s.after(g) {
		s.t.pass(s.t.h.TTL/20, "while "+g.who+" leads")
		led[g.who] = true
		missing := s.missing(led)
		switch {
		case missing == nil:
			return
		case time.Now().After(end):
			s.t.fatalf("%s has not led within %v %s", strings.Join(missing, " and "), bound, when)
		}
		g.resign()
	}
}

// missing returns the candidates that have not led.
func (s *story) missing(led map[string]bool) []string {
	var out []string
	for _, c := range s.clients {
		if !led[c.name] && !c.killed() {
			out = append(out, c.name)
		}
	}
	if s.process != nil && !s.process.killed.Load() && !led[s.process.id] {
		out = append(out, s.process.id)
	}
	return out
}

// end has all resign. Then nobody may stand in line, and nothing may be left.
func (s *story) end() {
	t := s.t
	rules := history.Rules{Vacancy: s.of.vacancy(t)}
	if s.of.notice != nil {
		rules.Notice = s.of.notice(t)
	}
	s.stop(rules, s.of.forgives...)
	s.watcher.showsWithin(t.h.crash())
	for _, c := range s.clients {
		if err := c.Close(); err != nil && !c.killed() {
			t.fatalf("%s: Close: %v", c.name, err)
		}
	}
	s.watcher.shows()
	s.seen.ordered()
	if err := s.watcher.Close(); err != nil {
		t.fatalf("%s: Close: %v", s.watcher.name, err)
	}
}

// lasts is how long a fault lasts, so that sessions end that it touches.
func (s *story) lasts() time.Duration { return (s.t.h.TTL + s.t.h.Slack) * 5 / 4 }

// leads returns who leads now.
func (s *story) leads() *reign { return s.leader(0, s.t.h.recovery()) }

// after waits until somebody leads whose term is later than g.
func (s *story) after(g *reign) *reign { return s.leader(g.token, s.t.h.recovery()) }

// until has leaders resign until one is as wanted; nil where none of two rounds is.
func (s *story) until(wanted func(g *reign) bool) *reign {
	g := s.leads()
	for range 2 * cast {
		if wanted(g) {
			return g
		}
		g.resign()
		g = s.after(g)
	}
	return nil
}

// isProcess reports whether the process leads.
func (s *story) isProcess(g *reign) bool { return g.who == s.process.id }

// inLine returns the client in that place of the line, the leader's being 0.
func (s *story) inLine(place int) (c *client, m backend.Member) {
	s.t.poll(s.t.h.recovery(), "all candidates stand in line", func() bool {
		line := s.watcher.members()
		if len(line) != cast {
			return false
		}
		m = line[place]
		i := slices.IndexFunc(s.clients, func(c *client) bool { return c.name == s.t.owner(m) })
		if i >= 0 {
			c = s.clients[i]
		}
		return i >= 0
	})
	return c, m
}
