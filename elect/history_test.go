package elect_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/memory"
)

// remembers returns a candidate that keeps a history of n terms.
func remembers(b backend.Backend, id string, n int) *elect.Election {
	return elect.New(b, "reports", &elect.Options{ID: id, History: n})
}

// tells returns the history, as ID and why, when nothing goes on any more.
func tells(t *testing.T, b backend.Backend) (lines []string) {
	t.Helper()
	synctest.Wait()
	terms, err := operate.New(b, "reports", "").History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range terms {
		why := p.Why
		switch {
		case p.Ended.IsZero():
			why = "lasts"
		case why == "":
			why = "unsaid"
		}
		if p.Ended.Before(p.Began) && !p.Ended.IsZero() || p.Began.IsZero() || i > 0 && p.Token <= terms[i-1].Token {
			t.Errorf("the history has %+v", terms)
		}
		lines = append(lines, p.ID+" "+why)
	}
	return lines
}

func checkHistory(t *testing.T, b backend.Backend, want ...string) {
	t.Helper()
	if got := tells(t, b); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the history is %q, want %q", got, want)
	}
}

// Each way in which a term ends is told by its leader, if that can, and otherwise by nobody.
func TestHistorySaysWhyATermEnded(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(t *testing.T, c *memory.Coordinator, b *memory.Backend, r *running, stop context.CancelFunc)
		want string
	}{
		{"the function returns", func(_ *testing.T, _ *memory.Coordinator, _ *memory.Backend, r *running, _ context.CancelFunc) {
			r.stop <- nil
		}, "resigned"},
		{"Run is stopped", func(_ *testing.T, _ *memory.Coordinator, _ *memory.Backend, _ *running, stop context.CancelFunc) {
			stop()
		}, "stopped"},
		{"somebody asks for it", func(t *testing.T, c *memory.Coordinator, _ *memory.Backend, _ *running, _ context.CancelFunc) {
			if _, err := operate.New(client(t, c, "operator"), "reports", "").AskToResign(t.Context(), nil); err != nil {
				t.Error(err)
			}
		}, elect.ErrAsked.Error()},
		{"an operator removes the member", func(_ *testing.T, c *memory.Coordinator, _ *memory.Backend, _ *running, _ context.CancelFunc) {
			c.Remove("reports", c.Members("reports")[0].Key)
		}, elect.ErrRemoved.Error()},
		{"the session ends", func(_ *testing.T, _ *memory.Coordinator, b *memory.Backend, _ *running, _ context.CancelFunc) {
			b.Expire()
		}, "session ended"},
		{"the process is killed", func(_ *testing.T, _ *memory.Coordinator, b *memory.Backend, _ *running, _ context.CancelFunc) {
			b.Kill()
		}, "unsaid"},
		{"the process is cut off", func(_ *testing.T, _ *memory.Coordinator, b *memory.Backend, _ *running, _ context.CancelFunc) {
			b.Cut()
			time.AfterFunc(2*ttl, b.Heal)
		}, "unsaid"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *memory.Coordinator) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				first, stop := context.WithCancel(ctx)
				b := client(t, c, "a")
				a := run(first, remembers(b, "a", 5))
				<-a.terms
				checkHistory(t, client(t, c, "observer"), "a lasts")
				next := run(ctx, remembers(client(t, c, "b"), "b", 5))
				synctest.Wait()
				time.Sleep(time.Second)

				tt.end(t, c, b, a, stop)
				<-next.terms
				time.Sleep(time.Second) // both write
				lines := tells(t, client(t, c, "observer"))
				if len(lines) != 2 || !strings.HasPrefix(lines[0], "a ") || !strings.Contains(lines[0], tt.want) || lines[1] != "b lasts" {
					t.Errorf("the history is %q; want that a led until %q, and that b leads", lines, tt.want)
				}
				stop()
				cancel()
				<-next.end
				<-a.end
			})
		})
	}
}

// The history delays nothing: not the beginning of a term, and not that of the next.
func TestHistoryDelaysNobody(t *testing.T) {
	const way = 100 * time.Millisecond
	took := func(n int) (first, handover time.Duration) {
		bubble(t, func(t *testing.T, c *memory.Coordinator) {
			a, b := client(t, c, "a"), client(t, c, "b")
			for _, b := range []*memory.Backend{a, b} {
				b.Delay(way, way)
			}
			began := time.Now()
			term, err := remembers(a, "a", n).Campaign(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			first = time.Since(began)
			elected := make(chan *elect.Term, 1)
			go func() {
				term, err := remembers(b, "b", n).Campaign(t.Context())
				if err != nil {
					t.Error(err)
				}
				elected <- term
			}()
			time.Sleep(ttl)
			left := time.Now()
			go term.Resign(t.Context())
			next := <-elected
			handover = time.Since(left)
			next.Resign(t.Context())
			term.Resign(t.Context())
		})
		return first, handover
	}
	first, handover := took(0)
	if f, h := took(20); f != first || h != handover {
		t.Errorf("with a history a term begins after %v, and the next %v after its end; without after %v and %v", f, h, first, handover)
	}
}

// The history is bounded, in the number of terms and in bytes.
func TestHistoryIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b := client(t, c, "a")
		lead := func(id string, n int) {
			t.Helper()
			term, err := remembers(b, id, n).Campaign(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := term.Resign(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 5 {
			lead(fmt.Sprint(i), 3)
		}
		checkHistory(t, b, "2 resigned", "3 resigned", "4 resigned")
		long := strings.Repeat("x", backend.MaxValue)
		for range 70 {
			lead(long, 1000)
		}
		if terms := tells(t, b); len(terms) < 50 || len(terms) > backend.MaxRecord/backend.MaxValue {
			t.Errorf("the history has %d terms whose IDs have %d bytes; want as many as a record of %d bytes can have", len(terms), backend.MaxValue, backend.MaxRecord)
		}
	})
}

// Whoever may write the history may write any time. What is read of it are instants whose distance is a Duration, in what is written
// back too.
func TestHistoryBelievesNoClockOfOthers(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b := client(t, c, "a")
		s, err := b.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		value := `{"history":1,"terms":[{"id":"x","token":0,"began":"0001-01-01T00:00:01Z","ended":"9999-12-31T23:59:59Z","why":"x"},` +
			`{"id":"y","token":0,"began":"2262-12-31T23:59:59Z"},{"id":"z","token":0,"began":"9999-12-31T23:59:59-23:59","ended":"0000-01-01T00:00:00+23:59"}]}`
		if _, err := s.Put(t.Context(), "reports.history", []byte(value), nil); err != nil {
			t.Fatal(err)
		}
		term, err := remembers(b, "a", 10).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := term.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		past, err := operate.New(b, "reports", "").History(t.Context())
		if err != nil || len(past) != 4 {
			t.Fatal(past, err)
		}
		for _, p := range past {
			for _, at := range []time.Time{p.Began, p.Ended} {
				if !at.IsZero() && (at.Year() < 1970 || at.Year() > 2200) {
					t.Errorf("%s has an instant of the year %d", p.ID, at.Year())
				}
			}
		}
	})
}

// Without Options.History nothing is written, and without records nothing can be.
func TestNoHistory(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b := client(t, c, "a")
		term, err := remembers(b, "a", 0).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := term.Resign(t.Context()); err != nil {
			t.Error(err)
		}
		if r := c.Record("reports.history"); r.Version != backend.Absent {
			t.Errorf("there is a history: %s", r.Value)
		}
		checkHistory(t, b)
	})
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithCancel(t.Context())
		lacks := bare{client(t, c, "a"), new(atomic.Int64)}
		r := run(ctx, remembers(lacks, "a", 5))
		<-r.terms
		if _, err := operate.New(lacks, "reports", "").History(ctx); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("History without records: %v, want ErrUnsupported", err)
		}
		cancel()
		if err := <-r.end; err != context.Canceled {
			t.Errorf("Run returned %v", err)
		}
	})
}

// A record that is somebody else's is left alone, and the election goes on. The log says so while the term lasts.
func TestHistoryOverwritesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b := client(t, c, "a")
		s, err := b.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, theirs := range []string{"mine", `{"history":2,"terms":[]}`, `{"history":1,"terms":7}`} {
			if _, err := s.Put(t.Context(), "reports.history", []byte(theirs), nil); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			var mu sync.Mutex
			o := &elect.Options{ID: "a", History: 5, Logger: slog.New(slog.NewTextHandler(lockedBuffer{&mu, &log}, nil))}
			term, err := elect.New(b, "reports", o).Campaign(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			mu.Lock()
			if n := strings.Count(log.String(), "could not write the history"); n != 1 {
				t.Errorf("while it leads, the log says %d times that there is no history:\n%s", n, log.String())
			}
			mu.Unlock()
			if err := term.Resign(t.Context()); err != nil {
				t.Error(err)
			}
			if r := c.Record("reports.history"); string(r.Value) != theirs {
				t.Errorf("the record was %q and is %q", theirs, r.Value)
			}
			if _, err := operate.New(b, "reports", "").History(t.Context()); err == nil || !strings.Contains(err.Error(), "reports.history") {
				t.Errorf("History says %v of %q", err, theirs)
			}
		}
	})
}

// A leader cannot overwrite its election's history by mistake.
func TestHistoryIsTheElectionsOwn(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		term, err := remembers(client(t, c, "a"), "a", 5).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer term.Resign(t.Context())
		if _, err := term.Put(t.Context(), "others.migrate-records", nil, backend.Any); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("a leader may write the list of a migration: %v", err)
		}
		if _, err := term.Put(t.Context(), "reports.history", nil, backend.Any); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("Put: %v, want ErrInvalid", err)
		}
		if err := term.Delete(t.Context(), "reports.history", backend.Any); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("Delete: %v, want ErrInvalid", err)
		}
	})
}

// Resign waits for the history no longer than it may take itself, and where the session has
// ended not even that long.
func TestHistoryHoldsUpNoEnd(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		o := &elect.Options{History: 5, ResignTimeout: 3 * time.Second}
		term, err := elect.New(full{client(t, c, "a"), true}, "reports", o).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := term.Resign(t.Context()); err != nil || time.Since(began) > o.ResignTimeout {
			t.Errorf("Resign returned %v after %v", err, time.Since(began))
		}
		if m := c.Members("reports"); len(m) > 0 {
			t.Errorf("%v stands", m)
		}

		b := client(t, c, "b")
		if term, err = elect.New(b, "reports", o).Campaign(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.Cut()
		<-term.Context().Done()
		time.Sleep(ttl) // the work goes on
		began = time.Now()
		if err := term.Resign(t.Context()); err != nil || time.Since(began) > time.Second {
			t.Errorf("cut off, Resign returned %v after %v", err, time.Since(began))
		}
	})
}

func TestHistoryArguments(t *testing.T) {
	for _, tt := range []struct {
		name string
		n    int
	}{{"reports", -1}, {strings.Repeat("x", backend.MaxName-3), 1}} {
		_, err := elect.New(memory.New(nil).Client("a"), tt.name, &elect.Options{History: tt.n}).Campaign(t.Context())
		if !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("History %d of %.10s: %v, want ErrInvalid", tt.n, tt.name, err)
		}
	}
}

// The bound of Resign holds for all that it does: the end of the term comes into the history within it, or
// not at all.
func TestResignIsBoundedWithAHistory(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		const bound = time.Second
		b := client(t, c, "a")
		term, err := elect.New(b, "reports", &elect.Options{History: 10, ResignTimeout: bound}).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b.Cut()
		began := time.Now()
		if err := term.Resign(t.Context()); err == nil {
			t.Error("Resign of a leader that is cut off returned nil")
		}
		if took := time.Since(began); took > bound {
			t.Errorf("Resign took %v, want %v at most", took, bound)
		}
		b.Heal()
	})
}
