package conformance_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/evidence/notes"
	"github.com/succession-dev/succession/memory"
)

// Stand campaigns again after each term, notes what it does on this machine's clock,
// and leaves the line at the end of its input.
func TestStand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(nil)
		b := c.Client("p")
		defer b.Close()
		in, commands := io.Pipe()
		var out bytes.Buffer
		result := make(chan error, 1)
		began := time.Now()
		go func() { result <- conformance.Stand(t.Context(), b, "reports", "p", in, &out) }()

		time.Sleep(time.Second)
		io.WriteString(commands, "resign\n")
		time.Sleep(time.Second)
		b.Cut() // until its session has ended
		time.Sleep(2 * memory.DefaultTTL)
		b.Heal()
		time.Sleep(memory.DefaultTTL)
		commands.Close()
		if err := <-result; err != nil {
			t.Fatal(err)
		}
		if n := len(c.Members("reports")); n != 0 {
			t.Errorf("%d members are left", n)
		}
		h, err := notes.Read(&out)
		if err != nil {
			t.Fatal(err)
		}
		if found := h.Check(history.Rules{}); len(found) > 0 {
			t.Errorf("its own history is broken: %v", found)
		}
		terms := h.Terms("reports")
		if len(terms) != 3 {
			t.Fatalf("%d terms, want 3: %+v", len(terms), terms)
		}
		zero := time.Duration(began.UnixNano())
		if at := terms[0].To - zero; terms[0].Candidate != "p" || terms[0].Why != string(history.Resigned) || at < time.Second || at > 1100*time.Millisecond {
			t.Errorf("the first term is %+v, ends after %v; want one that p resigned after a second", terms[0], at)
		}
		if terms[1].Why == string(history.Resigned) || terms[1].Deadline == 0 || terms[1].Led > terms[1].Deadline {
			t.Errorf("the second term is %+v; want one that was lost by its deadline", terms[1])
		}
	})
}

func TestStandRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(nil).Client("p")
		defer b.Close()
		for _, command := range []string{"abdicate", "resign now", "suspend", "suspend soon"} {
			err := conformance.Stand(t.Context(), b, "reports", "p", strings.NewReader(command+"\n"), io.Discard)
			if err == nil || !strings.Contains(err.Error(), command) {
				t.Errorf("%q: %v", command, err)
			}
		}
	})
}
