package health_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/metrics"
	"github.com/succession-dev/succession/metrics/health"
	"github.com/succession-dev/succession/recipes/lock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// get asks h, reads the body into v, and returns the status.
func get(t *testing.T, h http.Handler, v any) int {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if err := json.Unmarshal(w.Body.Bytes(), v); err != nil {
		t.Errorf("the body %q is no JSON: %v", w.Body, err)
	}
	if w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("the header is %v", w.Header())
	}
	return w.Code
}

func TestLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(nil)
		a, b := c.Client("a"), c.Client("b")
		candidates := map[string]*elect.Election{
			"web-1": elect.New(a, "reports", &elect.Options{ID: "web-1"}),
			"web-2": elect.New(b, "reports", &elect.Options{ID: "web-2"}),
		}
		leads := func(id string, term *elect.Term) {
			t.Helper()
			for who, e := range candidates {
				want, status := health.Standing{ID: who}, http.StatusServiceUnavailable
				if who == id {
					want.Leader, want.Token, status = true, term.Token(), http.StatusOK
				}
				var got health.Standing
				code := get(t, health.Leader(e), &got)
				deadline := got.Deadline
				got.Deadline = nil
				if code != status || got != want {
					t.Errorf("%s answers with %d, %+v; want %d, %+v", who, code, got, status, want)
				}
				if (deadline != nil) != want.Leader {
					t.Errorf("%s answers with the deadline %v", who, deadline)
				} else if deadline != nil && !deadline.Equal(term.Deadline()) {
					t.Errorf("the deadline is %v, want %v", deadline, term.Deadline())
				}
			}
		}
		campaign := func(id string) *elect.Term {
			term, err := candidates[id].Campaign(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return term
		}
		leads("nobody", nil)
		first := campaign("web-1")
		leads("web-1", first)
		first.Resign(t.Context())
		leads("nobody", nil)
		second := campaign("web-2")
		leads("web-2", second)
		// It is cut off, and its work goes on: it leads no more at once when its deadline has come.
		b.Cut()
		<-second.Context().Done()
		leads("nobody", nil)
		// Whoever wraps an election may keep a term that has ended.
		var got health.Standing
		if code := get(t, health.Leader(past{term: second}), &got); code != http.StatusServiceUnavailable || got.Leader {
			t.Errorf("a term that has ended is answered with %d, %+v", code, got)
		}
		b.Heal()
		second.Resign(t.Context())
		a.Close()
		b.Close()
	})
}

// A process is ready while it stands in the line of each election in which it campaigns, whoever leads: not before it has
// reached the coordinator, and not while it is cut off.
func TestReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(nil)
		a, b := c.Client("a"), c.Client("b")
		h := health.NewReady()
		is := func(ready bool, outside ...string) {
			t.Helper()
			synctest.Wait()
			status := http.StatusServiceUnavailable
			if ready {
				status = http.StatusOK
			}
			var got health.Readiness
			if code := get(t, h, &got); code != status || got.Ready != ready || !slices.Equal(got.Outside, outside) {
				t.Errorf("it answers with %d, %+v; want %d, and %q outside", code, got, status, outside)
			}
		}
		is(false)
		first, err := elect.New(a, "reports", nil).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		run := func(election string) {
			go func() {
				ended <- elect.New(b, election, &elect.Options{Trace: h.Trace}).Run(ctx, func(ctx context.Context, _ *elect.Term) error {
					<-ctx.Done()
					return nil
				})
			}()
		}
		b.Cut()
		run("reports")
		is(false, "reports")
		b.Heal()
		time.Sleep(time.Minute)
		is(true) // waits
		run("backups")
		is(true) // leads one of them
		b.Cut()
		time.Sleep(time.Minute)
		is(false, "backups", "reports")
		b.Heal()
		time.Sleep(time.Minute)
		first.Resign(t.Context())
		is(true)
		cancel()
		<-ended
		<-ended
		is(true) // what is over does not count
		a.Close()
		b.Close()
	})
}

// A leader that was lost does not stand in line until its work has ended and it has joined again. One that is to hand over does,
// because it still stands in front.
func TestReadyWhileTheWorkGoesOn(t *testing.T) {
	for name, tt := range map[string]struct {
		lose  func(t *testing.T, c *memory.Coordinator, b *memory.Backend)
		ready bool
	}{
		"cut off": {func(_ *testing.T, _ *memory.Coordinator, b *memory.Backend) { b.Cut() }, false},
		"removed": {func(_ *testing.T, c *memory.Coordinator, _ *memory.Backend) {
			c.Remove("reports", c.Members("reports")[0].Key)
		}, false},
		"asked": {func(t *testing.T, c *memory.Coordinator, _ *memory.Backend) {
			operator := c.Client("operator")
			defer operator.Close()
			if _, err := operate.New(operator, "reports", "").AskToResign(t.Context(), nil); err != nil {
				t.Error(err)
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := memory.New(nil)
				b := c.Client("a")
				defer b.Close()
				h, m := health.NewReady(), metrics.New(nil)
				is := func(ready bool) {
					t.Helper()
					synctest.Wait()
					status, in := http.StatusServiceUnavailable, 0.0
					if ready {
						status, in = http.StatusOK, 1
					}
					var got health.Readiness
					if code := get(t, h, &got); code != status {
						t.Errorf("it answers with %d, %+v; want %d", code, got, status)
					}
					for _, f := range m.Gather() {
						if f.Name == "succession_in_line" && f.Series[0].Value != in {
							t.Errorf("%s is %v, want %v", f.Name, f.Series[0].Value, in)
						}
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				terms, ended := make(chan *elect.Term), make(chan error)
				go func() {
					o := &elect.Options{Trace: trace.Tee(h.Trace, m.Trace)}
					ended <- elect.New(b, "reports", o).Run(ctx, func(_ context.Context, term *elect.Term) error {
						terms <- term
						<-terms
						return nil
					})
				}()
				first := <-terms
				is(true)
				tt.lose(t, c, b)
				<-first.Context().Done()
				is(tt.ready)
				b.Heal()
				time.Sleep(time.Minute)
				is(tt.ready)
				terms <- nil // its work ends
				<-terms
				is(true)
				cancel()
				terms <- nil
				<-ended
			})
		})
	}
}

// An election whose campaign has failed is one in whose line this process wants to stand, until it campaigns again. A campaign that was
// ended, that did not want to wait, or that was not ready, has not failed; and a lock is told to who wants it.
func TestReadyAfterACampaign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(nil)
		a, b := c.Client("a"), c.Client("b")
		defer a.Close()
		defer b.Close()
		h, m := health.NewReady(), metrics.New(nil)
		o := &elect.Options{Trace: trace.Tee(h.Trace, m.Trace)}
		over := func(outside bool, err, want error) {
			t.Helper()
			if !errors.Is(err, want) {
				t.Errorf("the campaign has failed with %v, want %v", err, want)
			}
			var got health.Readiness
			if code := get(t, h, &got); (code == http.StatusOK) == outside || len(got.Outside) > 0 != outside {
				t.Errorf("after %v it answers with %d, %+v; want it outside: %v", want, code, got, outside)
			}
			for _, f := range m.Gather() {
				if f.Name == "succession_in_line" && len(f.Series) > 0 != outside {
					t.Errorf("after %v the series are %+v; want one: %v", want, f.Series, outside)
				}
			}
		}
		first, err := elect.New(a, "reports", o).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		first.Resign(t.Context())
		c.Reset()
		time.Sleep(time.Minute) // a hears of it
		_, err = lock.NewMutex(a, "nightly", o).Lock(t.Context())
		over(false, err, backend.ErrReset)
		_, err = elect.New(a, "reports", o).Campaign(t.Context())
		over(true, err, backend.ErrReset)

		term, err := elect.New(b, "reports", nil).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer term.Resign(t.Context())
		_, err = elect.New(b, "reports", o).TryCampaign(t.Context())
		over(false, err, elect.ErrNotFirst)
		unready := *o
		unready.Ready = func(context.Context) error { return errors.New("no disk") }
		_, err = elect.New(b, "backups", &unready).TryCampaign(t.Context())
		over(false, err, elect.ErrNotReady)
		closed := c.Client("closed")
		closed.Close()
		_, err = elect.New(closed, "reports", o).Campaign(t.Context())
		over(false, err, backend.ErrClosed)
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		defer time.AfterFunc(time.Second, func() { cancel(enough) }).Stop()
		_, err = elect.New(b, "reports", o).Campaign(ctx)
		over(false, err, enough)
		ctx, stop := context.WithTimeoutCause(t.Context(), time.Second, enough)
		defer stop()
		_, err = elect.New(b, "reports", o).Campaign(ctx)
		over(false, err, enough)
	})
}

// A candidate that steps down, and pauses before it joins again, does not stand in line meanwhile.
func TestReadyBetweenTerms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(nil).Client("a")
		defer b.Close()
		h := health.NewReady()
		ctx, cancel := context.WithCancel(t.Context())
		led, ended := make(chan bool), make(chan error)
		go func() {
			ended <- elect.New(b, "reports", &elect.Options{Trace: h.Trace}).Run(ctx, func(context.Context, *elect.Term) error {
				led <- true
				return elect.ErrStepDown
			})
		}()
		for term := range 3 {
			<-led
			synctest.Wait()
			var got health.Readiness
			if code := get(t, h, &got); code != http.StatusServiceUnavailable || !slices.Equal(got.Outside, []string{"reports"}) {
				t.Errorf("after term %d it answers with %d, %+v", term, code, got)
			}
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// past is a candidate that keeps a term.
type past struct {
	idle
	term *elect.Term
}

func (p past) Term() *elect.Term { return p.term }

// Who does not lead says who it is, and no more.
func TestLeaderElsewhere(t *testing.T) {
	w := httptest.NewRecorder()
	health.Leader(idle{}).ServeHTTP(w, httptest.NewRequest("GET", "/leader", nil))
	if got, want := w.Body.String(), "{\"leader\":false,\"id\":\"web-1\"}\n"; w.Code != 503 || got != want {
		t.Errorf("%d, %s; want 503, %s", w.Code, got, want)
	}
}

// idle is a candidate that does not lead.
type idle struct{}

func (idle) ID() string        { return "web-1" }
func (idle) Term() *elect.Term { return nil }

func TestLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(&memory.Options{TTL: time.Hour}) // the session outlives what happens to it
		b := c.Client("a")
		live := health.NewLive(0)
		is := func(want bool, overdue int) {
			t.Helper()
			var got health.Liveness
			code := get(t, live, &got)
			if got.Live != want || (code == http.StatusOK) != want || len(got.Overdue) != overdue {
				t.Errorf("%d, %+v; want it to be live: %v, with %d overdue", code, got, want, overdue)
			}
		}
		is(true, 0)
		var terms []*elect.Term
		for _, name := range []string{"reports", "backups"} {
			term, err := elect.New(b, name, &elect.Options{Trace: live.Trace}).Campaign(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			terms = append(terms, term)
		}
		time.Sleep(time.Hour)
		is(true, 0) // leading is no failure
		b.Expire()
		for _, term := range terms {
			<-term.Context().Done()
		}
		synctest.Wait()
		time.Sleep(health.DefaultLimit)
		is(true, 0)
		time.Sleep(time.Nanosecond)
		is(false, 2)
		terms[0].Resign(t.Context())
		is(false, 1)
		terms[1].Resign(t.Context())
		is(true, 0)

		// Leaving may take long if the coordinator cannot be reached. That is no failure.
		term, err := elect.New(b, "reports", &elect.Options{Trace: live.Trace, ResignTimeout: time.Hour}).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c.Pause()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		resigned := make(chan error)
		go func() { resigned <- term.Resign(ctx) }()
		time.Sleep(2 * health.DefaultLimit)
		is(true, 0)
		c.Resume()
		<-resigned
		b.Close()
	})
}

func TestMethods(t *testing.T) {
	for name, h := range map[string]http.Handler{"live": health.NewLive(0), "leader": health.Leader(idle{})} {
		for method, allowed := range map[string]bool{"GET": true, "HEAD": true, "POST": false, "DELETE": false} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(method, "/", nil))
			if (w.Code != http.StatusMethodNotAllowed) != allowed {
				t.Errorf("%s: %s is answered with %d", name, method, w.Code)
			}
		}
	}
}
