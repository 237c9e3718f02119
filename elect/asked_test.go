package elect_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/internal/header"
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
					virtual.Must[backend.Version](t)(s.Put(t.Context(), "e", header.Header{Resign: number}.Encode(), nil))
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

// Whoever gives up AskToResign, at whatever moment, is told so if the leader may have been asked. So is who hears no answer until the
// session ends.
func TestAskingGivenUp(t *testing.T) {
	for i := range 80 {
		after, cut := time.Duration(i/2)*500*time.Microsecond, i%2 == 1
		virtual.Run(t, func(t *testing.T, c *memory.Coordinator) {
			term := virtual.Must[*elect.Term](t)(elect.New(virtual.Client(t, c, "a"), "e", &elect.Options{ID: "a"}).Campaign(t.Context()))
			defer term.Resign(t.Context())
			b := virtual.Client(t, c, "operator")
			b.Delay(time.Millisecond, time.Millisecond)
			ctx := t.Context()
			if cut {
				defer time.AfterFunc(after, b.CutAnswers).Stop()
			} else {
				within, cancel := context.WithTimeout(ctx, after)
				defer cancel()
				ctx = within
			}
			_, err := operate.New(b, "e", "").AskToResign(ctx, nil)
			time.Sleep(virtual.TTL) // what was sent arrives
			asked := errors.Is(term.Check(), elect.ErrAsked)
			if asked && err != nil && !strings.Contains(err.Error(), "not known whether a (n_0000000000) was asked to resign") {
				t.Errorf("after %v (answers are cut: %t), the leader was asked: %v", after, cut, err)
			}
			if !asked && err == nil {
				t.Errorf("after %v (answers are cut: %t), the leader was not asked", after, cut)
			}
		})
	}
}

// The leader is told who has asked it to resign and why, and so says the history. What somebody has written into the header
// otherwise is not passed on.
func TestAskedByWhom(t *testing.T) {
	for name, tt := range map[string]struct {
		asked string // written by hand, in the place of what the operator says
		want  string
	}{
		"an operator":     {"", "asked to resign by anna: the disk is replaced"},
		"several lines":   {"anna\na\nb", "asked to resign"},
		"control letters": {"anna\n\x1b[2J", "asked to resign"},
		"too long":        {"anna\n" + strings.Repeat("x", 600), "asked to resign"},
		"only who":        {"anna", "asked to resign by anna"},
	} {
		t.Run(name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T, c *memory.Coordinator) {
				b := virtual.Client(t, c, "a")
				e := elect.New(b, "e", &elect.Options{ID: "a", History: 5})
				term := virtual.Must[*elect.Term](t)(e.Campaign(t.Context()))
				if tt.asked == "" {
					op := operate.New(virtual.Client(t, c, "operator"), "e", "anna")
					virtual.Must[elect.Leader](t)(op.AskToResign(t.Context(), &operate.ResignOptions{Reason: "the disk is replaced"}))
				} else {
					s := virtual.Must[backend.Session](t)(b.Session(t.Context()))
					h := header.Header{Resign: term.Token(), Asked: tt.asked}
					virtual.Must[backend.Version](t)(s.Put(t.Context(), "e", h.Encode(), nil))
				}
				<-term.Context().Done()
				if err := term.Check(); !errors.Is(err, elect.ErrAsked) || !strings.HasSuffix(err.Error(), ": "+tt.want) {
					t.Errorf("the leader is told %v; want %q", err, tt.want)
				}
				term.Resign(t.Context())
				past := virtual.Must[[]operate.Past](t)(operate.New(b, "e", "").History(t.Context()))
				if len(past) != 1 || past[0].Why != tt.want {
					t.Errorf("the history is %+v; want %q", past, tt.want)
				}
			})
		})
	}
}

// A reason that could not be told is refused before anybody is asked.
func TestAskedWithoutReason(t *testing.T) {
	virtual.Run(t, func(t *testing.T, c *memory.Coordinator) {
		e := elect.New(virtual.Client(t, c, "a"), "e", &elect.Options{ID: "a"})
		term := virtual.Must[*elect.Term](t)(e.Campaign(t.Context()))
		defer term.Resign(t.Context())
		for _, reason := range []string{"two\nlines", "\x00", strings.Repeat("x", 513)} {
			op := operate.New(virtual.Client(t, c, "operator"), "e", "anna")
			if _, err := op.AskToResign(t.Context(), &operate.ResignOptions{Reason: reason}); !errors.Is(err, backend.ErrInvalid) {
				t.Errorf("the reason %.20q: %v", reason, err)
			}
			if _, err := op.Pause(t.Context(), reason); !errors.Is(err, backend.ErrInvalid) {
				t.Errorf("a pause for the reason %.20q: %v", reason, err)
			}
		}
		if err := term.Check(); err != nil {
			t.Error(err)
		}
	})
}
