package elect_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/internal/value"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/memory"
)

// Who has to yield again and again joins after longer and longer pauses, up to half a minute. Who has not yielded for a minute
// joins at once.
func TestYieldingAgainAndAgain(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		s, err := client(t, c, "better").Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		better := func() backend.Member {
			j, err := s.Join(t.Context(), "reports", value.Of{ID: "better", Rank: value.Rank{Priority: 9}}.String(), "")
			if err != nil {
				t.Fatal(err)
			}
			return j.Member
		}
		front := better()
		ctx, cancel := context.WithCancelCause(t.Context())
		end := make(chan error, 1)
		go func() {
			_, err := elect.New(client(t, c, "a"), "reports", &elect.Options{ID: "a", Priority: 1}).Campaign(ctx)
			end <- err
		}()
		// yields has the candidate yield, by a better one that joins behind it, and returns for how long it is away.
		yields := func() time.Duration {
			synctest.Wait()
			next := better()
			began := time.Now()
			if err := s.Leave(t.Context(), front); err != nil {
				t.Fatal(err)
			}
			front = next
			for synctest.Wait(); ; synctest.Wait() {
				if m := c.Members("reports"); len(m) == 2 && m[0].Position == next.Position {
					return time.Since(began)
				}
				if time.Sleep(5 * time.Millisecond); time.Since(began) > time.Hour {
					t.Fatalf("the candidate does not come back; in line stand %v", c.Members("reports"))
				}
			}
		}
		for range 2 {
			if d := yields(); d != 0 {
				t.Errorf("after the first time it is away for %v", d)
			}
			for most := 100 * time.Millisecond; most < time.Minute; most *= 2 {
				longest := min(most, 30*time.Second)
				if d := yields(); d < longest/2 || d > longest+5*time.Millisecond {
					t.Errorf("away for %v, want about %v at most", d, longest)
				}
			}
			time.Sleep(61 * time.Second)
		}

		// In a pause it is told why it is in one.
		synctest.Wait()
		yields()
		next := better()
		if err := s.Leave(t.Context(), front); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		cancel(errors.New("enough"))
		if err := <-end; !strings.Contains(err.Error(), "enough") || !strings.Contains(err.Error(), "priority 9") {
			t.Errorf("the campaign ends with %v", err)
		}
		_ = s.Leave(t.Context(), next)
	})
}

// A campaign that ends without a term says so, and counts no more among those that wait for a coordinator that is away.
func TestACampaignThatFailsIsTold(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b := client(t, c, "a")
		var l told
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, nil))
		b.Cut()
		enough := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 90*time.Second, enough)
		defer cancel()
		_, err := elect.New(b, "first", &elect.Options{Trace: l.trace}).Campaign(ctx)
		if !errors.Is(err, enough) || !errors.Is(err, backend.ErrUnavailable) {
			t.Errorf("the campaign ends with %v", err)
		}
		if ev := l.all(trace.Finished); len(ev) != 1 || !errors.Is(ev[0].Err, err) || !errors.Is(ev[0].Err, context.DeadlineExceeded) {
			t.Errorf("told of %v, want of the end with %v, because the time was up", ev, err)
		}
		// Others are told of the outage anew, and it is theirs alone.
		ctx, cancel = context.WithTimeoutCause(t.Context(), 90*time.Second, enough)
		defer cancel()
		if _, err = elect.New(b, "second", &elect.Options{Logger: logger}).Campaign(ctx); !errors.Is(err, enough) {
			t.Error(err)
		}
		if strings.Contains(log.String(), "elections=2") || !strings.Contains(log.String(), "elections=1") {
			t.Errorf("the log of the one that waits says\n%s", &log)
		}
		b.Heal()
	})
}

// An unkept session fails to read the copy of the fence of an election, until it is mended.
type unkept struct {
	backend.Session
	err   *atomic.Pointer[error]
	reads *atomic.Int32
}

// Join does not say that there is no copy.
func (s unkept) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	j, err := s.Session.Join(ctx, line, value, record)
	j.Record = nil
	return j, err
}

func (s unkept) Get(ctx context.Context, name string) (backend.Record, error) {
	if strings.HasSuffix(name, naming.Fence) {
		s.reads.Add(1)
		if err := s.err.Load(); err != nil {
			return backend.Record{}, *err
		}
	}
	return s.Session.Get(ctx, name)
}

// Who cannot look after the fence stays in line while that may pass, and does not lead; it looks again as it waits.
func TestFenceThatCannotBeRead(t *testing.T) {
	for _, tt := range []struct {
		err   error
		stays bool
	}{
		{backend.ErrUnavailable, true},
		{backend.ErrVersion, true},
		{backend.ErrForeign, false},
		{backend.ErrHeader, false},
	} {
		t.Run(fmt.Sprint(tt.err), func(t *testing.T) {
			bubble(t, func(t *testing.T, c *memory.Coordinator) {
				var failing atomic.Pointer[error]
				var reads atomic.Int32
				failing.Store(&tt.err)
				b := view.Of(client(t, c, "a"), func(s backend.Session) backend.Session {
					return unkept{Session: s, err: &failing, reads: &reads}
				})
				first, err := elect.New(client(t, c, "b"), "reports", nil).Campaign(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				type result struct {
					term *elect.Term
					err  error
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				end := make(chan result, 1)
				go func() {
					term, err := elect.New(b, "reports", nil).Campaign(ctx)
					end <- result{term, err}
				}()
				synctest.Wait()
				if !tt.stays {
					if r := <-end; !errors.Is(r.err, tt.err) {
						t.Errorf("the campaign ends with %v, want %v", r.err, tt.err)
					}
					first.Resign(t.Context())
					return
				}
				stood := c.Members("reports")
				time.Sleep(5 * ttl)
				if n := reads.Load(); n < 4 || n > 12 {
					t.Errorf("it has looked %d times in five session times", n)
				}
				if now := c.Members("reports"); len(now) != 2 || now[1] != stood[1] {
					t.Errorf("in line stand %v, want still %v", now, stood)
				}
				c.Remove("reports", stood[1].Key)
				time.Sleep(2 * ttl)
				if now := c.Members("reports"); len(now) != 2 || now[1] == stood[1] {
					t.Errorf("it was removed, and in line stand %v", now)
				}
				first.Resign(t.Context())
				time.Sleep(time.Second)
				if len(end) > 0 {
					t.Error("it leads, and cannot look after the fence")
				}
				failing.Store(nil)
				if r := <-end; r.err != nil {
					t.Error(r.err)
				} else if err := r.term.Resign(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
