package main

import (
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

const s = time.Second

// of makes a history of one election from notes, with the faults given.
func of(faults []history.Fault, events ...history.Event) *history.History {
	for i := range events {
		events[i].Election = "e"
	}
	return history.Merge(&history.History{Events: events, Faults: faults})
}

func won(who string, at time.Duration) history.Event {
	return history.Event{Kind: history.Won, Candidate: who, At: at}
}

func lost(who string, at time.Duration) history.Event {
	return history.Event{Kind: history.Ended, Candidate: who, At: at}
}

func TestJudge(t *testing.T) {
	const fault, end = 10 * s, 30 * s
	pause := []history.Fault{{Kind: paused, Target: "a", From: fault, To: 20 * s}}
	for _, c := range []struct {
		name string
		h    *history.History
		want outcome
	}{
		{"handover with a gap", of(nil, won("a", 1*s), lost("a", 14*s), won("b", 16*s)),
			outcome{Vacancy: 2 * s, Old: oldStopped, Late: -2 * s}},
		{"stopped late", of(nil, won("a", 1*s), won("b", 16*s), lost("a", 19*s)),
			outcome{Overlap: 3 * s, Old: oldStopped, Late: 3 * s}},
		{"never stopped", of(nil, won("a", 1*s), won("b", 16*s)),
			outcome{Overlap: 14 * s, OverlapOpen: true, Old: oldNever}},
		{"nobody follows", of(nil, won("a", 1*s), lost("a", 12*s)),
			outcome{Vacancy: 18 * s, VacancyOpen: true, Old: oldStopped}},
		{"leads on", of(nil, won("a", 1*s)),
			outcome{Old: oldKept}},
		{"leads again", of(nil, won("a", 1*s), lost("a", 11*s), won("a", 15*s)),
			outcome{Vacancy: 4 * s, Old: oldStopped, Late: -4 * s}},
		{"crashed", of(nil, won("a", 1*s), history.Event{Kind: history.Left, Candidate: "a", At: 10 * s}, won("b", 17*s)),
			outcome{Vacancy: 7 * s, Old: oldGone}},
		// A paused process does nothing, and what it does afterwards counts.
		{"paused and stopped at once", of(pause, won("a", 1*s), won("b", 16*s), lost("a", 20*s)),
			outcome{Vacancy: 6 * s, Old: oldStopped}},
		{"paused and stopped late", of(pause, won("a", 1*s), won("b", 16*s), lost("a", 21*s)),
			outcome{Vacancy: 6 * s, Overlap: 1 * s, Old: oldStopped, Late: 1 * s}},
		{"paused to the end, as nobody follows", of([]history.Fault{{Kind: paused, Target: "a", From: fault, To: end}}, won("a", 1*s)),
			outcome{Vacancy: 20 * s, VacancyOpen: true, Old: oldPaused}},
		{"two gaps and two overlaps add up", of(nil, won("a", 1*s), lost("a", 11*s), won("b", 12*s), won("a", 15*s), lost("b", 16*s),
			lost("a", 20*s), won("b", 21*s), won("a", 22*s), lost("a", 23*s)),
			outcome{Vacancy: 2 * s, Overlap: 2 * s, Old: oldStopped, Late: -1 * s}},
		// What was before the fault is none of its doing.
		{"overlap before the fault", of(nil, won("b", 1*s), won("a", 2*s), lost("b", 3*s)),
			outcome{Old: oldKept}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := judge(c.h, fault, end); got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// What candidates say comes when they notice, and counts from when they last acted.
func TestLastAct(t *testing.T) {
	const fault, end = 10 * s, 30 * s
	for _, c := range []struct {
		name   string
		paused bool          // from 10 s to 20 s
		act    time.Duration // the last of a
		want   outcome
	}{
		{"before the next election", false, 14 * s, outcome{Vacancy: 2 * s, Old: oldStopped, Late: -2 * s}},
		{"at the next election", false, 16 * s, outcome{Old: oldStopped}},
		{"after the next election", false, 17 * s, outcome{Overlap: 1 * s, Old: oldStopped, Late: 1 * s}},
		{"before a pause", true, 10*s - time.Millisecond, outcome{Vacancy: 6 * s, Old: oldStopped, Late: -10*s - time.Millisecond}},
		{"after a pause", true, 20*s + time.Millisecond, outcome{Vacancy: 6 * s, Overlap: time.Millisecond, Old: oldStopped, Late: time.Millisecond}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run{leader: &contender{id: "a"}, next: &contender{id: "b"}, notes: newNotebook("e")}
			at := func(d time.Duration) time.Time { return r.notes.base.Add(d) }
			said := func(id, what string, d time.Duration) {
				r.notes.note(coordtest.PeerEvent{Peer: &coordtest.Peer{ID: id}, At: at(d), What: what})
			}
			r.faultAt = at(fault)
			if c.paused {
				r.pausedFrom, r.pausedTo = at(fault), at(20*s)
			}
			said("a", "elected", 1*s)
			said("b", "elected", 16*s)
			said("a", "lost", c.act) // the last to be heard, whenever the act was
			if got := judge(r.history(end), fault, end); got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestCell(t *testing.T) {
	c := cell{Runs: []outcome{
		{Overlap: 0, Vacancy: 3 * s, Old: oldStopped, Late: -3 * s},
		{Overlap: 900 * time.Millisecond, Vacancy: 0, Old: oldStopped, Late: 900 * time.Millisecond},
		{Overlap: 61 * s, OverlapOpen: true, Vacancy: 1 * s, Old: oldNever},
	}}
	if got, want := c.overlap(), "**> 61 s**"; got != want {
		t.Errorf("overlap %q, want %q", got, want)
	}
	for _, g := range []struct{ what, got, want string }{
		{"vacancies", spread(c.vacancies()), "1.0 s / 3.0 s / 3.0 s"},
		{"overlaps", spread(c.both()), "0.9 s / > 61 s / > 61 s"},
		{"overlaps of none", spread(nil), "–"},
		{"stops", c.stops(), "1× in time, 1× up to 0.9 s late, 1× never"},
		{"count", c.counted(), "**2 of 3**"},
	} {
		if g.got != g.want {
			t.Errorf("%s %q, want %q", g.what, g.got, g.want)
		}
	}
	c.Errors = []string{"broken"}
	if got, want := c.overlap(), "**> 61 s** (1 of 4 not measured)"; got != want {
		t.Errorf("overlap %q, want %q", got, want)
	}
}
