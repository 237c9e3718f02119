package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
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
	"github.com/succession-dev/succession/migrate"
	"github.com/succession-dev/succession/recipes/barrier"
	"github.com/succession-dev/succession/recipes/group"
	"github.com/succession-dev/succession/recipes/lock"
	"github.com/succession-dev/succession/recipes/queue"
	"github.com/succession-dev/succession/recipes/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// value returns the value of the series whose labels have these values, and fails the test where
// there is none.
func value(t *testing.T, m *metrics.Recorder, family string, labels ...string) float64 {
	t.Helper()
	return series(t, m, family, labels...).Value
}

func series(t *testing.T, m *metrics.Recorder, family string, labels ...string) metrics.Series {
	t.Helper()
	for _, f := range m.Gather() {
		for _, s := range f.Series {
			if f.Name == family && strings.Join(s.Labels, "|") == strings.Join(labels, "|") {
				return s
			}
		}
	}
	t.Fatalf("there is no series %s of %q", family, labels)
	return metrics.Series{}
}

// want fails the test where a series has another value.
func want(t *testing.T, m *metrics.Recorder, v float64, family string, labels ...string) {
	t.Helper()
	if got := value(t, m, family, labels...); got != v {
		t.Errorf("%s%q is %v, want %v", family, labels, got, v)
	}
}

// What is written of a story that has a bit of everything is in testdata/story.txt.
func TestText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := metrics.New(&metrics.Options{MasterStatus: true})
		tell := trace.Named("reports", m.Trace)
		m.Trace(trace.Event{Election: "never \"quoted\"\\\n", Recipe: "lock", Kind: trace.SessionOpened})
		first := backend.Member{Line: "reports", Key: "n-7", Position: 7}
		second := backend.Member{Line: "reports", Key: "n-17179869185", Position: 17179869185}
		m.MigrationPhase("reports", migrate.Begun)
		tell(trace.Event{Kind: trace.Started})
		tell(trace.Event{Kind: trace.SessionOpened, TTL: 10 * time.Second})
		tell(trace.Event{Kind: trace.Retrying, Err: fmt.Errorf("no luck: %w", &backend.Error{Op: "join", Err: backend.ErrUnavailable})})
		tell(trace.Event{Kind: trace.Retrying, Err: elect.ErrDeadline})
		tell(trace.Event{Kind: trace.Joined, Member: first})
		time.Sleep(20 * time.Millisecond)
		tell(trace.Event{Kind: trace.Elected, Member: first, Token: 7})
		tell(trace.Event{Kind: trace.Heartbeat, TTL: 10 * time.Second, RoundTrip: 2500 * time.Microsecond, Slack: 6 * time.Second})
		tell(trace.Event{Kind: trace.Heartbeat, TTL: 10 * time.Second, RoundTrip: 11 * time.Second})
		tell(trace.Event{Kind: trace.Ended, Member: first, Token: 7, Err: &elect.LostError{Err: elect.ErrDeadline}})
		tell(trace.Event{Kind: trace.SessionLost, Member: first})
		tell(trace.Event{Kind: trace.Joined, Member: second})
		time.Sleep(1500 * time.Millisecond)
		tell(trace.Event{Kind: trace.Elected, Member: second, Token: 17179869185})

		var got strings.Builder
		if n, err := m.WriteTo(&got); err != nil || n != int64(got.Len()) {
			t.Errorf("WriteTo says %d bytes, %v; it has written %d", n, err, got.Len())
		}
		story, err := os.ReadFile("testdata/story.txt")
		if err != nil {
			t.Fatal(err)
		}
		text := regexp.MustCompile(`version="[^"]+"`).ReplaceAllString(got.String(), `version="VERSION"`)
		if text != string(story) {
			t.Errorf("it has written\n%s\nwant testdata/story.txt", text)
		}
	})
}

// Each phase that package migrate has is one of the series.
func TestPhases(t *testing.T) {
	source, err := os.ReadFile("../migrate/status.go")
	if err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile(`= Phase\(protocol\.(\w+)\)`).FindAllStringSubmatch(string(source), -1)
	if len(all) < 10 {
		t.Fatalf("%d phases were found in the source of package migrate", len(all))
	}
	m := metrics.New(nil)
	for _, phase := range all {
		name := strings.ToLower(phase[1])
		m.MigrationPhase("reports", migrate.Phase(name))
		want(t, m, 1, "succession_migration_phase", "reports", name)
	}
}

// Each way in which a real term ends is counted under its name.
func TestEnds(t *testing.T) {
	broken := errors.New("the disk is full")
	ends := map[string]func(t *testing.T, c *memory.Coordinator, b *memory.Backend, stop context.CancelFunc){
		"resigned": nil,
		"stopped":  func(_ *testing.T, _ *memory.Coordinator, _ *memory.Backend, stop context.CancelFunc) { stop() },
		"session":  func(_ *testing.T, _ *memory.Coordinator, b *memory.Backend, _ context.CancelFunc) { b.Expire() },
		"deadline": func(_ *testing.T, _ *memory.Coordinator, b *memory.Backend, _ context.CancelFunc) { b.Cut() },
		"removed": func(_ *testing.T, c *memory.Coordinator, _ *memory.Backend, _ context.CancelFunc) {
			c.Remove("reports", c.Members("reports")[0].Key)
		},
		"asked": func(t *testing.T, c *memory.Coordinator, _ *memory.Backend, _ context.CancelFunc) {
			operator := c.Client("operator")
			defer operator.Close()
			if _, err := operate.New(operator, "reports", "").AskToResign(t.Context(), nil); err != nil {
				t.Error(err)
			}
		},
		"sealed": func(t *testing.T, c *memory.Coordinator, _ *memory.Backend, _ context.CancelFunc) {
			operator := c.Client("operator")
			defer operator.Close()
			s, err := operator.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Put(t.Context(), "reports", backend.Header{Sealed: "etcd://h1"}.Encode(), nil); err != nil {
				t.Fatal(err)
			}
		},
	}
	for end, bring := range ends {
		t.Run(end, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := memory.New(nil)
				b := c.Client("a")
				m := metrics.New(nil)
				e := elect.New(b, "reports", &elect.Options{Trace: m.Trace})
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				first := true
				e.Run(ctx, func(ctx context.Context, _ *elect.Term) error {
					if !first {
						stop()
						return nil
					}
					first = false
					want(t, m, 1, "succession_leader", "reports")
					if bring == nil {
						return broken
					}
					bring(t, c, b, stop)
					<-ctx.Done()
					b.Heal()
					synctest.Wait() // the end is told by another goroutine
					want(t, m, 0, "succession_leader", "reports")
					want(t, m, 1, "succession_terms_total", "reports", end)
					return nil
				})
				want(t, m, 0, "succession_leader", "reports")
				want(t, m, 1, "succession_terms_total", "reports", end)
				b.Close()
			})
		})
	}
}

// A leader that hands over because it is not ready is counted so, whatever it says of why.
func TestNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(nil)
		ctx, cancel := context.WithCancel(t.Context())
		var broken atomic.Bool
		ended := make(chan struct{})
		candidate := func(name string, ready func(context.Context) error) *metrics.Recorder {
			m, b := metrics.New(nil), c.Client(name)
			e := elect.New(b, "reports", &elect.Options{Trace: m.Trace, Ready: ready})
			go func() {
				e.Run(ctx, func(ctx context.Context, _ *elect.Term) error {
					<-ctx.Done()
					return nil
				})
				b.Close()
				ended <- struct{}{}
			}()
			time.Sleep(time.Second)
			return m
		}
		first := candidate("a", func(context.Context) error {
			if broken.Load() {
				return elect.ErrDeadline
			}
			return nil
		})
		second := candidate("b", nil)
		want(t, first, 1, "succession_leader", "reports")
		broken.Store(true)
		time.Sleep(10 * time.Second)
		want(t, first, 0, "succession_leader", "reports")
		want(t, first, 1, "succession_terms_total", "reports", "not_ready")
		want(t, second, 1, "succession_leader", "reports")
		cancel()
		<-ended
		<-ended
	})
}

// Work that goes on after its term is overdue, for as long as it does; work that ends before its
// term is not, however long leaving takes.
func TestOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(nil)
		b := c.Client("a")
		m := metrics.New(nil)
		overdue := func(v float64) { t.Helper(); want(t, m, v, "succession_overdue_seconds") }
		e := elect.New(b, "reports", &elect.Options{Trace: m.Trace})

		term, err := e.Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		overdue(0)
		b.Expire()
		<-term.Context().Done()
		synctest.Wait()
		time.Sleep(40 * time.Second)
		overdue(40)
		term.Resign(t.Context())
		overdue(0)

		if term, err = e.Campaign(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Pause()
		resigned := make(chan error)
		go func() { resigned <- term.Resign(t.Context()) }()
		time.Sleep(2 * time.Second)
		overdue(0)
		c.Resume()
		<-resigned
		b.Close()
	})
}

// The heartbeats of a session are counted, with what was left of it; and the time in line.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(&memory.Options{TTL: 9 * time.Second})
		a, b := c.Client("a"), c.Client("b")
		m := metrics.New(nil)
		first, err := elect.New(a, "reports", nil).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b.Delay(time.Second, time.Second)
		seen := make(map[string]int)
		stop := m.Observe(func(family string, _ float64) { seen[family]++ })
		got := make(chan *elect.Term)
		go func() {
			term, err := elect.New(b, "reports", &elect.Options{Trace: m.Trace}).Campaign(t.Context())
			if err != nil {
				t.Error(err)
			}
			got <- term
		}()
		time.Sleep(time.Minute)
		first.Resign(t.Context())
		term := <-got
		synctest.Wait()
		want(t, m, 9, "succession_session_seconds")
		want(t, m, float64(term.Token()), "succession_term_token", "reports")
		hist := func(family string) *metrics.Histogram { return series(t, m, family).Histogram }
		// A heartbeat is sent every three seconds, and confirmed two seconds later: then four are left.
		beats, slack, campaign := hist("succession_heartbeat_seconds"), hist("succession_session_slack_ratio"), hist("succession_campaign_seconds")
		if n := beats.Count(); n < 15 || beats.Sum/float64(n) != 2 {
			t.Errorf("%d heartbeats took %v s, want about 20 that took 2 s each", n, beats.Sum)
		}
		if n := slack.Count(); n != beats.Count() || math.Abs(slack.Sum/float64(n)-4.0/9) > 1e-9 {
			t.Errorf("of %d confirmations the slack was %v, want 4 s of 9 each", n, slack.Sum)
		}
		if campaign.Count() != 1 || campaign.Sum < 55 || campaign.Sum > 62 {
			t.Errorf("%d campaigns took %v s, want one that took about a minute", campaign.Count(), campaign.Sum)
		}
		stop()
		for family, h := range map[string]*metrics.Histogram{
			"succession_heartbeat_seconds": beats, "succession_session_slack_ratio": slack, "succession_campaign_seconds": campaign,
		} {
			if uint64(seen[family]) != h.Count() {
				t.Errorf("an observer has seen %d values of %s, which has %d", seen[family], family, h.Count())
			}
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := hist("succession_heartbeat_seconds").Count(); n <= beats.Count() || uint64(seen["succession_heartbeat_seconds"]) != beats.Count() {
			t.Errorf("an observer that was stopped at %d heartbeats has seen %d of %d", beats.Count(), seen["succession_heartbeat_seconds"], n)
		}
		term.Resign(t.Context())
		a.Close()
		b.Close()
	})
}

// Of many candidates one leads, whenever one looks; and a process that takes part in ever new
// elections can forget the old ones.
func TestSumOfLeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(nil)
		ctx, cancel := context.WithCancel(t.Context())
		var recorders []*metrics.Recorder
		ended := make(chan struct{})
		const candidates = 4
		for i := range candidates {
			m := metrics.New(nil)
			recorders = append(recorders, m)
			b := c.Client(fmt.Sprint(i))
			go func() {
				for ctx.Err() == nil {
					elect.New(b, "reports", &elect.Options{Trace: m.Trace}).Run(ctx, func(ctx context.Context, _ *elect.Term) error {
						time.Sleep(time.Second)
						return nil
					})
				}
				b.Close()
				ended <- struct{}{}
			}()
		}
		time.Sleep(500 * time.Millisecond)
		led := 0
		for range 10 {
			sum := 0.0
			for _, m := range recorders {
				sum += value(t, m, "succession_leader", "reports")
			}
			if sum != 1 {
				t.Errorf("%v lead", sum)
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		for _, m := range recorders {
			led += int(value(t, m, "succession_terms_total", "reports", "resigned"))
		}
		if led < 9 {
			t.Errorf("%d terms have ended in 10 s of terms of 1 s", led)
		}
		cancel()
		for range candidates {
			<-ended
		}
		for _, m := range recorders {
			m.Forget("reports")
			for _, f := range m.Gather() {
				if slices.Contains(f.Labels, "election") && len(f.Series) > 0 {
					t.Errorf("a recorder that has forgotten has series of %s", f.Name)
				}
			}
		}
	})
}

// Half of the session time, which is left on each coordinator if all is well, is not read as less than a
// quarter, at which the alert fires: Prometheus takes a value for any in its bucket.
func TestSlackIsReadWell(t *testing.T) {
	for _, f := range metrics.New(nil).Gather() {
		if f.Name != "succession_session_slack_ratio" {
			continue
		}
		if !slices.Contains(f.Bounds, 0.25) || f.Bounds[len(f.Bounds)-1] != 1 {
			t.Errorf("the bounds are %v; want a quarter and the whole among them", f.Bounds)
		}
		return
	}
	t.Error("there is no slack")
}

// gone fails the test where there is the series.
func gone(t *testing.T, m *metrics.Recorder, family, election string) {
	t.Helper()
	for _, f := range m.Gather() {
		for _, s := range f.Series {
			if f.Name == family && s.Labels[0] == election {
				t.Errorf("%s%q is %v, want no such series", family, election, s.Value)
			}
		}
	}
}

// Who campaigns and does not stand in line is told from who does, and from who does not campaign: as long as the
// coordinator has never been reached, when a waiter is cut off, and when a term is over.
func TestInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(nil)
		a, b := c.Client("a"), c.Client("b")
		first, err := elect.New(a, "reports", nil).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m := metrics.New(nil)
		inLine := func(v float64) { t.Helper(); synctest.Wait(); want(t, m, v, "succession_in_line", "reports") }
		b.Cut()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			ended <- elect.New(b, "reports", &elect.Options{Trace: m.Trace}).Run(ctx, func(ctx context.Context, _ *elect.Term) error {
				<-ctx.Done()
				return nil
			})
		}()
		inLine(0) // it has no session yet
		b.Heal()
		time.Sleep(time.Minute)
		inLine(1)
		b.Cut()
		time.Sleep(time.Minute)
		inLine(0)
		b.Heal()
		time.Sleep(time.Minute)
		inLine(1)
		first.Resign(t.Context())
		time.Sleep(time.Second)
		inLine(1)
		want(t, m, 1, "succession_leader", "reports")
		cancel()
		<-ended
		gone(t, m, "succession_in_line", "reports")
		want(t, m, 0, "succession_leader", "reports")
		a.Close()
		b.Close()
	})
}

// A pause is told by whoever waits behind its gate, and no longer than that.
func TestPaused(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, o *operate.Operator, b *memory.Backend, cancel context.CancelFunc) (leads float64){
		"resumed": func(t *testing.T, o *operate.Operator, _ *memory.Backend, _ context.CancelFunc) float64 {
			if _, err := o.Resume(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			return 1
		},
		"left": func(_ *testing.T, _ *operate.Operator, _ *memory.Backend, cancel context.CancelFunc) float64 {
			cancel()
			return 0
		},
		"session lost": func(_ *testing.T, _ *operate.Operator, b *memory.Backend, _ context.CancelFunc) float64 {
			b.Cut()
			return 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := memory.New(nil)
				b, operator := c.Client("a"), c.Client("operator")
				m := metrics.New(nil)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() {
					ended <- elect.New(b, "reports", &elect.Options{Trace: m.Trace}).Run(ctx, func(ctx context.Context, _ *elect.Term) error {
						<-ctx.Done()
						return nil
					})
				}()
				time.Sleep(time.Minute)
				gone(t, m, "succession_paused", "reports")
				o := operate.New(operator, "reports", "ops")
				if _, err := o.Pause(t.Context(), "maintenance"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				want(t, m, 1, "succession_paused", "reports")
				want(t, m, 1, "succession_in_line", "reports")
				behind, leave := context.WithTimeout(t.Context(), time.Minute)
				defer leave()
				elect.New(b, "reports", &elect.Options{Trace: m.Trace}).Campaign(behind) // it ends without having led
				want(t, m, 1, "succession_paused", "reports")
				leads := end(t, o, b, cancel)
				time.Sleep(time.Minute)
				want(t, m, 0, "succession_paused", "reports")
				want(t, m, leads, "succession_leader", "reports")
				cancel()
				<-ended
				b.Close()
				operator.Close()
			})
		})
	}
}

// A recipe says which it is, from the first step on, and an election does not: alerts about one leader are for elections alone.
func TestRecipes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(nil).Client("a")
		defer b.Close()
		m := metrics.New(nil)
		o := &elect.Options{Trace: m.Trace}
		for name, begin := range map[string]func(ctx context.Context, name string) error{
			"lock": func(ctx context.Context, name string) error {
				_, err := lock.NewMutex(b, name, o).Lock(ctx)
				return err
			},
			"lock-rw": func(ctx context.Context, name string) error {
				_, err := lock.NewRWMutex(b, name, o).RLock(ctx)
				return err
			},
			"semaphore": func(ctx context.Context, name string) error {
				_, err := lock.NewSemaphore(b, name, 2, o).Acquire(ctx)
				return err
			},
			"queue": func(ctx context.Context, name string) error {
				_, err := queue.New(b, name, &queue.Options{Options: *o}).Take(ctx)
				return err
			},
			"group":   func(ctx context.Context, name string) error { _, err := group.New(b, name, o).Join(ctx); return err },
			"barrier": func(ctx context.Context, name string) error { return barrier.New(b, name, 2, o).Wait(ctx) },
			"pool": func(ctx context.Context, name string) error {
				return task.NewPool(b, name, o).Work(ctx, func(context.Context, *task.Task) (string, error) { return "", nil })
			},
			"standby": func(ctx context.Context, name string) error {
				return task.NewStandby(b, name, o).Cold(ctx, func(context.Context, *task.Run) error { return nil })
			},
			"election": func(ctx context.Context, name string) error {
				_, err := elect.New(b, name, o).Campaign(ctx)
				return err
			},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if err := begin(ctx, name); err != nil && ctx.Err() == nil {
				t.Errorf("%s: %v", name, err)
			}
			cancel()
			if kind, _, _ := strings.Cut(name, "-"); kind == "election" {
				gone(t, m, "succession_recipe", name)
			} else {
				want(t, m, 1, "succession_recipe", name, kind)
			}
		}
		if _, err := elect.New(b, "group", o).Campaign(t.Context()); err != nil { // whose name an election has too
			t.Fatal(err)
		}
		gone(t, m, "succession_recipe", "group")
	})
}

// A process with many elections on one session tells of the session once, and of each election in few series.
func TestManyElections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const elections = 100
		series := func(elections int) (series int, beats uint64) {
			c := memory.New(nil)
			b := c.Client("a")
			m := metrics.New(nil)
			for i := range elections {
				term, err := elect.New(b, fmt.Sprint("reports-", i), &elect.Options{Trace: m.Trace}).Campaign(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer term.Resign(t.Context())
			}
			defer b.Close()
			time.Sleep(time.Minute)
			synctest.Wait()
			for _, f := range m.Gather() {
				series += len(f.Series)
				if f.Name == "succession_heartbeat_seconds" {
					beats = f.Series[0].Histogram.Count()
				}
			}
			return series, beats
		}
		one, beats := series(1)
		all, heard := series(elections)
		if each := float64(all-one) / (elections - 1); each > 12 {
			t.Errorf("an election more is %v series more, want 12 at most", each)
		}
		if heard != beats || beats < 10 {
			t.Errorf("of a session with one election %d heartbeats are counted, with %d of them %d", beats, elections, heard)
		}
	})
}
