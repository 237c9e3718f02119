package demo

import (
	"strings"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect/trace"
)

// The table must be able to say that the election did not behave.
func TestTableAccuses(t *testing.T) {
	leads := func(who int, token uint64) step {
		return step{Event: trace.Event{Kind: trace.Elected, Token: token}, who: who}
	}
	leaves := func(who int) step { return step{Event: trace.Event{Kind: trace.Ended}, who: who} }
	wakes := func(who int) step { return step{Event: trace.Event{Kind: woken}, who: who} }
	joins := func(who int, key string) step {
		return step{Event: trace.Event{Kind: trace.Joined, Member: backend.Member{Key: key}}, who: who}
	}
	for _, tt := range []struct {
		name  string
		steps []step
		want  string
	}{
		{"tokens fall", []step{leads(1, 2), leaves(1), wakes(2), leads(2, 1)}, "tokens must grow"},
		{"a herd", []step{leads(1, 1), leaves(1), wakes(2), wakes(2), leads(2, 2)}, "each must wake one"},
		{"one joins again", []step{joins(1, "a"), joins(2, "b"), leads(1, 1), joins(2, "c"), leaves(1), leads(2, 3)}, "a session was lost"},
		{"one never led", []step{leads(1, 1)}, "a session was lost"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			table := newTable(&out, ui.AsText, 2, "memory:x")
			for _, s := range tt.steps {
				table.add(s)
			}
			if err := table.sum(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("sum returns %v, want an error with %q", err, tt.want)
			}
		})
	}
}
