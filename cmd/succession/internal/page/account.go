package page

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/internal/history"
)

// An account is who led when in one election, as a page has it. Times are in milliseconds since 1970.
type account struct {
	Terms  []term `json:"terms"`
	Gaps   []gap  `json:"gaps"`
	Since  int64  `json:"since"`            // the page has looked from then on
	Untold string `json:"untold,omitempty"` // why the election's history cannot be read
}

// A term is one of an account.
type term struct {
	ID     string `json:"id"`
	Token  string `json:"token"`
	From   int64  `json:"from"`
	To     int64  `json:"to,omitempty"`     // 0 while it lasts
	Before bool   `json:"before,omitempty"` // it had begun before anybody looked
	Late   bool   `json:"late,omitempty"`   // it may have ended before To
	Told   bool   `json:"told,omitempty"`   // the election's history alone knows it
	Why    string `json:"why,omitempty"`
}

// A gap is a time in which nothing was seen.
type gap struct {
	Kind string `json:"kind"`
	From int64  `json:"from"`
	To   int64  `json:"to,omitempty"`
}

// account returns what was seen of an election.
func (p *past) account(election string) account {
	h, first, open := p.history(election)
	ms := func(d time.Duration) int64 { return p.begin.Add(d).UnixMilli() }
	a := account{Since: ms(first)}
	for _, t := range h.Terms(election) {
		out := term{ID: t.Candidate, Token: strconv.FormatUint(t.Token, 10), From: ms(t.From), Before: t.From == first}
		if !t.Open {
			out.To = ms(t.To)
			if t.Why != string(history.Ended) {
				out.Why = t.Why
			}
		}
		a.Terms = append(a.Terms, out)
	}
	for i, f := range h.Faults {
		g := gap{Kind: f.Kind, From: ms(f.From), To: ms(f.To)}
		if open && i == len(h.Faults)-1 {
			g.To = 0
		}
		a.Gaps = append(a.Gaps, g)
	}
	return a
}

// account returns what was seen of an election, and what its leaders have written down.
func (w *watcher) account(ctx context.Context, election string) (account, error) {
	told, err := operate.New(w.b, election, "").History(ctx)
	a := w.past.account(election)
	switch {
	case errors.Is(err, backend.ErrUnavailable), errors.Is(err, backend.ErrSessionEnded), ctx.Err() != nil:
		return account{}, err
	case errors.Is(err, errors.ErrUnsupported), errors.Is(err, backend.ErrInvalid): // there can be none
	case err != nil:
		a.Untold = ui.Clip(ui.OneLine(err.Error()))
	}
	a.add(told)
	return a, nil
}

// maxTold is how many terms of an election's history are shown: the newest. Whoever may lead can write thousands.
const maxTold = maxEvents / 2

// unsaid is why a term has ended whose leader did not write that down.
const unsaid = "did not say why"

// add adds the terms of the election's history, and orders all by their tokens. What a leader has written down itself is taken before
// what was seen: a page sees late what it has not looked at.
func (a *account) add(told []operate.Past) {
	if len(told) == 0 {
		return
	}
	told = told[max(0, len(told)-maxTold):]
	seen := make(map[string]int)
	for i, t := range a.Terms {
		seen[t.Token] = i
	}
	for _, p := range told {
		token := strconv.FormatUint(p.Token, 10)
		i, known := seen[token]
		if last := len(a.Terms) - 1; !known && last >= 0 && a.Terms[last].To == 0 && LedBy(p, a.Terms[last].ID) {
			i, known = last, true
		}
		if !known {
			i = len(a.Terms)
			a.Terms = append(a.Terms, term{ID: ui.Clip(p.ID), Token: token, Told: true, Late: true, Why: unsaid, To: a.looked(p.Began.UnixMilli())})
			if !p.Ended.IsZero() {
				a.Terms[i].To = p.Ended.UnixMilli() // when the next term began
			}
		}
		t := &a.Terms[i]
		t.From, t.Before = p.Began.UnixMilli(), false
		if p.Why != "" {
			t.Why = ui.Clip(p.Why)
			if t.To != 0 { // the line says who leads
				t.To, t.Late = p.Ended.UnixMilli(), false
			}
		}
		if t.To != 0 {
			t.To = max(t.To, t.From) // by another clock
		}
	}
	slices.SortStableFunc(a.Terms, func(s, t term) int { // by tokens, as clocks differ
		return cmp.Or(cmp.Compare(len(s.Token), len(t.Token)), cmp.Compare(s.Token, t.Token))
	})
}

// LedBy reports whether a term that a history tells of last is the one by which the candidate with the id leads. A leader's token grows
// if the fence is raised, and the history has the first one.
func LedBy(last operate.Past, id string) bool {
	return last.Ended.IsZero() && ui.Clip(last.ID) == ui.Clip(id)
}

// looked returns when the page looked first, at an instant or after it.
func (a *account) looked(at int64) int64 {
	for _, g := range a.Gaps {
		if g.From <= at && at <= g.To {
			return g.To
		}
	}
	return max(at, a.Since)
}

// history returns the account as something to draw. What lasted when the coordinator was heard from last, which is 0
// while it is, ends there: nobody knows more.
func (a account) history(election string, lost int64) *history.History {
	h := new(history.History)
	begin := a.Since
	for i, t := range a.Terms {
		begin = min(begin, t.From)
		if t.To == 0 && lost != 0 {
			a.Terms[i].To, a.Terms[i].Why = max(lost, t.From), "not known since then"
		}
	}
	at := func(ms int64) time.Duration { return time.Duration(ms-begin) * time.Millisecond }
	for _, t := range a.Terms {
		token, _ := strconv.ParseUint(t.Token, 10, 64)
		h.Events = append(h.Events, history.Event{At: at(t.From), Kind: history.Won, Election: election, Candidate: ui.Visible(t.ID), Token: token})
		if t.To != 0 {
			h.Events = append(h.Events, history.Event{At: at(t.To), Kind: history.Ended, Election: election, Candidate: ui.Visible(t.ID), Token: token, Why: ui.Visible(t.Why)})
		}
	}
	for _, g := range a.Gaps {
		h.Faults = append(h.Faults, history.Fault{Kind: g.Kind, From: at(g.From), To: at(cmp.Or(g.To, time.Now().UnixMilli()))})
	}
	return h
}
