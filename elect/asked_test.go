package elect_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	virtual "github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/memory"
)

// A number in the header that is no term's ends no term, whenever it was written; and a request of an operator, or a pause, is
// heard in spite of it.
func TestAskedOfNoTerm(t *testing.T) {
	for name, ask := range map[string]func(*testing.T, *operate.Operator) error{
		"AskToResign": func(t *testing.T, op *operate.Operator) error {
			_, err := op.AskToResign(t.Context(), nil)
			return err
		},
		"Pause": func(t *testing.T, op *operate.Operator) error {
			go op.Pause(t.Context(), "a test") // which waits for the leader
			return nil
		},
	} {
		for _, number := range []uint64{1000, math.MaxInt64, math.MaxUint64} {
			virtual.Run(t, func(t *testing.T, c *memory.Coordinator) {
				b := virtual.Client(t, c, "a")
				s := virtual.Must[backend.Session](t)(b.Session(t.Context()))
				plant := func() {
					virtual.Must[backend.Version](t)(s.Put(t.Context(), "e", backend.Header{Resign: number}.Encode(), nil))
				}
				e := elect.New(b, "e", &elect.Options{ID: "a"})
				plant()
				term := virtual.Must[*elect.Term](t)(e.Campaign(t.Context()))
				defer term.Resign(t.Context())
				time.Sleep(virtual.TTL)
				plant()
				time.Sleep(virtual.TTL)
				if err := term.Check(); err != nil {
					t.Fatalf("the header has %d, and the term with token %d has ended: %v", number, term.Token(), err)
				}
				if err := ask(t, operate.New(virtual.Client(t, c, "operator"), "e", "")); err != nil {
					t.Fatal(err)
				}
				time.Sleep(virtual.TTL)
				if err := term.Check(); !errors.Is(err, elect.ErrAsked) {
					t.Errorf("after %s, with %d in the header, the leader is told %v", name, number, err)
				}
			})
		}
	}
}
