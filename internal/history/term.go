package history

import "time"

// A Term is one leadership, as its candidate noted it.
type Term struct {
	Election  string
	Candidate string
	Token     uint64
	Position  uint64
	From, To  time.Duration
	Deadline  time.Duration // by which it had to be over, as known at its end; 0 is none
	Led       time.Duration // see [Event]; 0 is not known
	Why       string        // why it ended
	Open      bool          // it had not ended when the history did
	// Deposed says that an operator took its member away, at DeposedAt. From then on somebody
	// else may lead.
	Deposed   bool
	DeposedAt time.Duration
}

// LedUntil returns the end of the time in which the candidate believed to lead: Led if that is
// known, and else To.
func (t *Term) LedUntil() time.Duration {
	if t.Led > 0 {
		return min(t.To, max(t.From, t.Led))
	}
	return t.To
}

// until returns the end of the time in which the term is held against others.
func (t *Term) until() time.Duration {
	if t.Deposed {
		return min(t.LedUntil(), max(t.From, t.DeposedAt))
	}
	return t.LedUntil()
}

// Terms returns the terms of an election in the order in which they were won.
func (h *History) Terms(election string) []Term {
	b := terms{last: make(map[string]int), gone: make(map[place]time.Duration)}
	_, b.end = h.Span()
	for _, e := range h.Events {
		if e.Election == election {
			b.add(e)
		}
	}
	return b.all
}

// terms builds terms from events.
type terms struct {
	all  []Term
	last map[string]int // each candidate's newest term, as an index of all
	gone map[place]time.Duration
	end  time.Duration // of the history
}

type place struct {
	candidate string
	position  uint64
}

func (b *terms) add(e Event) {
	at := place{e.Candidate, e.Position}
	switch e.Kind {
	case Won:
		t := Term{
			Election: e.Election, Candidate: e.Candidate, Token: e.Token, Position: e.Position,
			From: e.At, To: b.end, Open: true,
		}
		if e.Position > 0 {
			t.DeposedAt, t.Deposed = b.gone[at]
		}
		b.last[e.Candidate] = len(b.all)
		b.all = append(b.all, t)
	case Ended, CheckFailed, Resigned, Left:
		t := b.of(e)
		if t == nil {
			return
		}
		if t.Open {
			t.To, t.Open, t.Why, t.Led = e.At, false, string(e.Kind), e.Led
		}
		if e.At == t.To && e.Kind == Ended || t.Deadline == 0 { // this event knows most of the end
			t.Deadline = e.Deadline
			if e.Why != "" {
				t.Why = e.Why
			}
		}
	case Deposed:
		b.gone[at] = e.At
		if t := b.of(e); t != nil && t.Open && !t.Deposed {
			t.Deposed, t.DeposedAt = true, e.At
		}
	}
}

// of returns the term that the event is about. An event without a token is about its
// candidate's newest term. An event with a token may be about an earlier one: if one goroutine
// waits for the end of a term and another campaigns, the candidate may have won again.
func (b *terms) of(e Event) *Term {
	i, ok := b.last[e.Candidate]
	for ; ok && i >= 0; i-- {
		t := &b.all[i]
		if t.Candidate == e.Candidate && (e.Token == 0 || e.Token == t.Token) {
			return t
		}
	}
	return nil
}
