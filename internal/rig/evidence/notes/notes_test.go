package notes_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/evidence/notes"
)

const joined = `{"at":1,"event":"joined","election":"e","candidate":"c"}` + "\n"

func TestRead(t *testing.T) {
	tests := []struct {
		name, text string
		events     int
		err        string // part of the error; empty for none
	}{
		{"empty lines", "\n" + joined + "\n\n" + joined, 2, ""},
		{"cut off by a crash", joined + `{"at":2,"event":"wo`, 1, ""},
		{"last line whole, without its end", joined + strings.TrimSpace(joined), 2, ""},
		{"cut off in the middle", `{"at":2,"event":"wo` + "\n" + joined, 0, "line 1"},
		{"unknown event", joined + `{"at":2,"event":"sang","election":"e","candidate":"c"}` + "\n", 0, `line 2: no such event: "sang"`},
		{"unknown field", `{"at":2,"event":"won","election":"e","candidate":"c","mood":"good"}` + "\n", 0, "mood"},
		{"no candidate", `{"at":2,"event":"won","election":"e"}` + "\n", 0, "without its election or candidate"},
		{"before the clock", `{"at":-2,"event":"won","election":"e","candidate":"c"}` + "\n", 0, "before the clock"},
		{"fault backwards", `{"fault":"cut","from":2,"to":1}` + "\n", 0, "from 2 to 1"},
		{"two on a line", strings.TrimSpace(joined) + joined, 0, "line 1"},
		{"endless line", strings.Repeat("x", 2<<20) + "\n", 0, "longer than"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, err := notes.Read(strings.NewReader(tt.text))
			switch {
			case tt.err != "":
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want one with %q", err, tt.err)
				}
			case err != nil:
				t.Error(err)
			case len(h.Events) != tt.events:
				t.Errorf("%d events, want %d", len(h.Events), tt.events)
			}
		})
	}
}

// A part of a history has the events of its time, and faults cut to its time.
func TestBetween(t *testing.T) {
	const sec = time.Second
	h := history.History{Faults: []history.Fault{{Kind: "cut", From: sec, To: 9 * sec}, {Kind: "pause", From: 8 * sec, To: 9 * sec}}}
	for i, at := range []time.Duration{0, 2 * sec, 5 * sec, 5 * sec, 6 * sec, 7 * sec} {
		h.Events = append(h.Events, history.Event{At: at, Kind: history.Joined, Election: "reports", Candidate: fmt.Sprintf("web-%d", 1+i/3)})
	}
	got := notes.Between(&h, 2*sec, 5*sec)
	for _, e := range got.Events {
		if e.Candidate != "web-1" || e.At < 2*sec || e.At >= 5*sec {
			t.Errorf("between 2 s and 5 s there is %+v", e)
		}
	}
	if len(got.Events) == 0 {
		t.Error("there are no events between 2 s and 5 s")
	}
	if want := []history.Fault{{Kind: "cut", From: 2 * sec, To: 5 * sec}}; !reflect.DeepEqual(got.Faults, want) {
		t.Errorf("the faults are %+v, want %+v", got.Faults, want)
	}
}
