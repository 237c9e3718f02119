package main

import (
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/history"
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
			outcome{Vacancy: 2 * s, Old: oldTold, Late: -2 * s}},
		{"told late", of(nil, won("a", 1*s), won("b", 16*s), lost("a", 19*s)),
			outcome{Overlap: 3 * s, Old: oldTold, Late: 3 * s}},
		{"never told", of(nil, won("a", 1*s), won("b", 16*s)),
			outcome{Overlap: 14 * s, OverlapOpen: true, Old: oldNever}},
		{"nobody follows", of(nil, won("a", 1*s), lost("a", 12*s)),
			outcome{Vacancy: 18 * s, VacancyOpen: true, Old: oldTold}},
		{"leads on", of(nil, won("a", 1*s)),
			outcome{Old: oldKept}},
		{"leads again", of(nil, won("a", 1*s), lost("a", 11*s), won("a", 15*s)),
			outcome{Vacancy: 4 * s, Old: oldTold, Late: -4 * s}},
		{"crashed", of(nil, won("a", 1*s), history.Event{Kind: history.Left, Candidate: "a", At: 10 * s}, won("b", 17*s)),
			outcome{Vacancy: 7 * s, Old: oldGone}},
		// A paused process believes nothing, and what it believes afterwards counts.
		{"paused and told at once", of(pause, won("a", 1*s), won("b", 16*s), lost("a", 20*s)),
			outcome{Vacancy: 6 * s, Old: oldTold}},
		{"paused and told late", of(pause, won("a", 1*s), won("b", 16*s), lost("a", 21*s)),
			outcome{Vacancy: 6 * s, Overlap: 1 * s, Old: oldTold, Late: 1 * s}},
		{"two gaps and two overlaps add up", of(nil, won("a", 1*s), lost("a", 11*s), won("b", 12*s), won("a", 15*s), lost("b", 16*s),
			lost("a", 20*s), won("b", 21*s), won("a", 22*s), lost("a", 23*s)),
			outcome{Vacancy: 2 * s, Overlap: 2 * s, Old: oldTold, Late: -1 * s}},
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

func TestCell(t *testing.T) {
	c := cell{Runs: []outcome{
		{Overlap: 0, Vacancy: 3 * s, Old: oldTold, Late: -3 * s},
		{Overlap: 900 * time.Millisecond, Vacancy: 0, Old: oldTold, Late: 900 * time.Millisecond},
		{Overlap: 61 * s, OverlapOpen: true, Vacancy: 1 * s, Old: oldNever},
	}}
	if got, want := c.overlap(), "**> 61 s**"; got != want {
		t.Errorf("overlap %q, want %q", got, want)
	}
	if got, want := c.vacancy(), "3.0 s / 1.0 s"; got != want {
		t.Errorf("vacancy %q, want %q", got, want)
	}
	if got, want := c.told(), "1× in time, 1× 0.9 s late, 1× never"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}
