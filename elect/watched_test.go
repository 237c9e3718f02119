package elect_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/memory"
)

// A leader that is not ready hands over although it could not look at once, and gives a newcomer a second to say that it is not ready
// either.
func TestUnreadyLeaderThatCannotLook(t *testing.T) {
	for name, tt := range map[string]struct {
		fails int32
		err   error
	}{"it can": {0, nil}, "not at once": {3, backend.ErrUnavailable}} {
		t.Run(name, func(t *testing.T) {
			inField(t, func(t *testing.T, f *field) {
				able := unreadySwitch()
				able.set(nil)
				var lists atomic.Int32
				how := other{list: func(string) error {
					if lists.Add(1) <= tt.fails {
						return tt.err
					}
					return nil
				}}
				term := lead(t, as(t, f.c, "a", how), &elect.Options{Ready: able.ready})
				able.set(errNoDisk)
				time.Sleep(10 * time.Second)
				if err := term.Check(); err != nil {
					t.Fatalf("nobody else stands in line, and the term has ended: %v", err)
				}
				leave := f.foreign("b")
				began := time.Now()
				select {
				case <-term.Context().Done():
				case <-time.After(time.Minute):
					t.Fatal("it does not hand over")
				}
				if d := time.Since(began); !errors.Is(term.Check(), elect.ErrNotReady) || d < time.Second || d > 1200*time.Millisecond {
					t.Errorf("after %v: %v", d, term.Check())
				}
				term.Resign(t.Context())
				leave()
			})
		})
	}
}

// A history that cannot be read is an error, and so is what is none.
func TestHistoryThatCannotBeRead(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b := client(t, c, "a")
		if _, err := operate.New(b, strings.Repeat("x", backend.MaxName), "").History(t.Context()); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("of a name that is too long: %v", err)
		}
		for text, ok := range map[string]bool{
			`{"history":1,"terms":[]}`:           true,
			`{"history":2,"terms":[]}`:           false,
			`{"terms":[],"history":1}`:           false,
			` {"history":1,"terms":[]}`:          false,
			`{"history":1,"terms":[`:             false,
			`{"history":1,"terms":[{"id":"a"}]}`: true,
		} {
			if _, err := operate.HistoryOf(backend.Record{Value: []byte(text), Version: 1}); (err == nil) != ok {
				t.Errorf("%s: %v", text, err)
			}
		}
		b.Close()
		if _, err := operate.New(b, "reports", "").History(t.Context()); !errors.Is(err, backend.ErrClosed) {
			t.Errorf("of a backend that is closed: %v", err)
		}
	})
}

// The election of a process has a term as long as that lasts, and a listener that has stopped is told nothing more, also by one that is
// told before it.
func TestListenersThatStop(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		e := elect.New(client(t, c, "a"), "reports", nil)
		told := 0
		var stop func()
		e.Listen(func(term *elect.Term) {
			if term != nil {
				stop()
			}
		})
		stop = e.Listen(func(*elect.Term) { told++ })
		term, err := e.Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if told != 1 { // when it began to listen
			t.Errorf("a listener that was stopped was told %d times", told)
		}
		term.Resign(t.Context())
	})
}

// A history is written although the first requests fail, and a write that is refused as the member has gone ends the term.
func TestHistoryThroughFailures(t *testing.T) {
	history := "reports" + naming.History
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		var gets, puts atomic.Int32
		fail := func(n *atomic.Int32) func(string) error {
			return func(name string) error {
				if name == history && n.Add(1)%2 != 0 { // every second one
					return backend.ErrUnavailable
				}
				return nil
			}
		}
		b := as(t, c, "a", other{get: fail(&gets), put: fail(&puts)})
		term := lead(t, b, &elect.Options{ID: "a", History: 5})
		time.Sleep(time.Minute)
		past, err := operate.New(client(t, c, "reader"), "reports", "").History(t.Context())
		if err != nil || len(past) != 1 || past[0].ID != "a" || !past[0].Ended.IsZero() {
			t.Errorf("while it leads: %+v, %v", past, err)
		}
		term.Resign(t.Context())
		past, err = operate.New(client(t, c, "reader"), "reports", "").History(t.Context())
		if err != nil || len(past) != 1 || past[0].Why != "resigned" || past[0].Ended.IsZero() {
			t.Errorf("after its term: %+v, %v", past, err)
		}
	})
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		refused := atomic.Int32{}
		b := as(t, c, "a", other{put: func(name string) error {
			if name == history && refused.Add(1) == 1 {
				return backend.ErrNotMember
			}
			return nil
		}})
		term := lead(t, b, &elect.Options{ID: "a", History: 5})
		time.Sleep(time.Second)
		if err := term.Check(); !errors.Is(err, elect.ErrRemoved) {
			t.Errorf("the history of its term was refused, as it has gone: %v", err)
		}
		term.Resign(t.Context())
		past, err := operate.New(client(t, c, "reader"), "reports", "").History(t.Context())
		if err != nil || len(past) != 1 || past[0].Why != elect.ErrRemoved.Error() {
			t.Errorf("after its term: %+v, %v", past, err)
		}
	})
}
