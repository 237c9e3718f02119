package gocron_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"go.uber.org/goleak"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/local"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/lock"

	adapter "github.com/succession-dev/succession/adapters/gocron"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ttl   = 10 * time.Second
	every = time.Minute // between two runs of a job
)

// A machine has a scheduler of its own. Its job counts its runs.
type machine struct {
	b       *memory.Backend
	s       gocron.Scheduler
	elector *adapter.Elector // nil with a locker
	runs    atomic.Int64
}

func scheduler(t *testing.T, o ...gocron.SchedulerOption) gocron.Scheduler {
	t.Helper()
	s, err := gocron.NewScheduler(o...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Shutdown() })
	return s
}

// add adds a job named "send" to s, and starts s.
func add(t *testing.T, s gocron.Scheduler, task any, first time.Time) {
	t.Helper()
	if _, err := s.NewJob(gocron.DurationJob(every), gocron.NewTask(task), gocron.WithName("send/all"),
		gocron.WithStartAt(gocron.WithStartDateTime(first))); err != nil {
		t.Fatal(err)
	}
	s.Start()
}

func elected(t *testing.T, c *memory.Coordinator, name string) *machine {
	t.Helper()
	m := &machine{b: c.Client(name)}
	t.Cleanup(func() { m.b.Close() })
	m.elector = adapter.NewElector(elect.New(m.b, "jobs", &elect.Options{ID: name}))
	t.Cleanup(func() { m.elector.Close() })
	m.s = scheduler(t, gocron.WithDistributedElector(m.elector))
	add(t, m.s, func() { m.runs.Add(1) }, time.Now().Add(every))
	synctest.Wait()
	return m
}

// Of two schedulers the one that leads runs the job, and when that is gone the other does.
func TestElector(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(t *testing.T, m *machine)
	}{
		{"closed", func(t *testing.T, m *machine) {
			if err := m.elector.Close(); err != nil {
				t.Error(err)
			}
		}},
		{"cut off", func(_ *testing.T, m *machine) { m.b.Cut() }},
		{"session ended", func(_ *testing.T, m *machine) { m.b.Expire() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := memory.New(&memory.Options{TTL: ttl})
				a, b := elected(t, c, "a"), elected(t, c, "b")
				if err := a.elector.IsLeader(t.Context()); err != nil {
					t.Errorf("the first does not lead: %v", err)
				}
				if err := b.elector.IsLeader(t.Context()); !errors.Is(err, adapter.ErrNotLeader) {
					t.Errorf("the second leads, or says %v", err)
				}
				time.Sleep(3*every + every/2)
				if a.runs.Load() != 3 || b.runs.Load() != 0 {
					t.Errorf("after three minutes the job ran %d times on the leader and %d times on the other", a.runs.Load(), b.runs.Load())
				}
				tt.end(t, a)
				time.Sleep(3 * every)
				if a.runs.Load() != 3 || b.runs.Load() != 3 {
					t.Errorf("three minutes after the end of the first the job ran %d times there and %d times on the other", a.runs.Load(), b.runs.Load())
				}
			})
		})
	}
}

// A task ends with its term. Where the term is resigned, the next begins when the task has returned.
func TestTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(&memory.Options{TTL: ttl})
		client := func(name string) *memory.Backend {
			b := c.Client(name)
			t.Cleanup(func() { b.Close() })
			return b
		}
		began, ended := make(chan *elect.Term, 1), make(chan time.Time, 1)
		x := adapter.NewElector(elect.New(client("a"), "jobs", nil))
		t.Cleanup(func() { x.Close() })
		synctest.Wait()
		s := scheduler(t, gocron.WithDistributedElector(x))
		add(t, s, x.Task(func(ctx context.Context, term *elect.Term) error {
			began <- term
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), elect.ErrAsked) {
				t.Errorf("the context of the task ends with %v", context.Cause(ctx))
			}
			time.Sleep(3 * time.Second) // it tidies up
			ended <- time.Now()
			return nil
		}), time.Now().Add(time.Second))
		<-began
		next := make(chan time.Time, 1)
		go func() {
			term, err := elect.New(client("b"), "jobs", nil).Campaign(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			next <- time.Now()
			term.Resign(t.Context())
		}()
		synctest.Wait()
		if _, err := operate.New(client("operator"), "jobs", "").AskToResign(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if e, n := <-ended, <-next; n.Before(e) {
			t.Errorf("another led %v before the task had ended", e.Sub(n))
		}
	})
}

// A task may resign the term: then the next in line leads, and this scheduler stands behind it.
func TestTaskThatResigns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(&memory.Options{TTL: ttl})
		a, b := elected(t, c, "a"), elected(t, c, "b")
		for _, m := range []*machine{a, b, a} {
			if err := m.elector.Task(func(ctx context.Context, term *elect.Term) error { return term.Resign(ctx) })(t.Context()); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second)
		}
		if err := b.elector.IsLeader(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A task does nothing where another leads.
func TestTaskOfOneThatDoesNotLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(&memory.Options{TTL: ttl})
		elected(t, c, "a")
		b := elected(t, c, "b")
		err := b.elector.Task(func(context.Context, *elect.Term) error { t.Error("it was called"); return nil })(t.Context())
		if !errors.Is(err, adapter.ErrNotLeader) {
			t.Errorf("Task returned %v", err)
		}
	})
}

// What ends a campaign is told by whoever is asked, and in the log.
func TestElectorWhoseCampaignEnds(t *testing.T) {
	for _, tt := range []struct {
		name, election string
		end            func(c *memory.Coordinator)
		why            error
	}{
		{"no election can be named so", "/jobs", func(*memory.Coordinator) {}, backend.ErrInvalid},
		{"the coordinator was reset", "jobs", func(c *memory.Coordinator) { c.Reset() }, backend.ErrReset},
		{"closed", "jobs", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			was := slog.Default()
			slog.SetDefault(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError})))
			t.Cleanup(func() { slog.SetDefault(was) })
			synctest.Test(t, func(t *testing.T) {
				c := memory.New(&memory.Options{TTL: ttl})
				b := c.Client("a")
				defer b.Close()
				x := adapter.NewElector(elect.New(b, tt.election, nil))
				time.Sleep(time.Second)
				if tt.end == nil {
					x.Close()
				} else {
					tt.end(c)
				}
				<-x.Done()
				if err := x.IsLeader(t.Context()); !errors.Is(err, adapter.ErrNotLeader) || !errors.Is(err, tt.why) && tt.why != nil {
					t.Errorf("IsLeader: %v", err)
				}
				if err := x.Close(); !errors.Is(err, tt.why) {
					t.Errorf("Close: %v", err)
				}
			})
			records := 0
			if tt.why != nil {
				records = 1
			}
			if got := log.String(); strings.Count(got, "\n") != records || strings.Count(got, "election="+tt.election) != records {
				t.Errorf("the log has %q, want %d record", got, records)
			}
		})
	}
}

// Each run of a job is on one machine, also where clocks differ by less than Hold.
func TestLocker(t *testing.T) {
	for _, tt := range []struct {
		name   string
		hold   time.Duration
		behind time.Duration
		want   int64 // runs in three minutes
	}{
		{"at the same time", 0, 0, 3},
		{"clocks differ", 0, 500 * time.Millisecond, 3},
		{"clocks differ, and nothing is held", -1, 500 * time.Millisecond, 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := memory.New(&memory.Options{TTL: ttl})
				var runs atomic.Int64
				first := time.Now().Add(every)
				for _, name := range []string{"a", "b"} {
					b := c.Client(name)
					t.Cleanup(func() { b.Close() })
					l := adapter.NewLocker(b, "jobs", &adapter.LockerOptions{Hold: tt.hold})
					t.Cleanup(func() { l.Close() })
					add(t, scheduler(t, gocron.WithDistributedLocker(l)), func() {
						runs.Add(1)
						time.Sleep(10 * time.Millisecond)
					}, first)
					first = first.Add(tt.behind)
				}
				time.Sleep(3*every + every/2)
				if got := runs.Load(); got != tt.want {
					t.Errorf("the job ran %d times in three minutes, want %d", got, tt.want)
				}
			})
		})
	}
}

// A lock is held from when it was obtained, however long that took.
func TestLockerThatIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(&memory.Options{TTL: ttl})
		b := c.Client("a")
		defer b.Close()
		b.Delay(600*time.Millisecond, 600*time.Millisecond)
		l := adapter.NewLocker(b, "jobs", nil) // holds for a second
		defer l.Close()
		held, err := l.Lock(t.Context(), "send")
		if err != nil {
			t.Fatal(err)
		}
		if err := held.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(900 * time.Millisecond)
		if n := len(c.Members("jobs-send")); n != 1 {
			t.Errorf("%d hold it 0.9 s after it was obtained", n)
		}
		time.Sleep(2 * time.Second)
		if n := len(c.Members("jobs-send")); n != 0 {
			t.Errorf("%d hold it 2.9 s after it was obtained", n)
		}
	})
}

// The name of a job may have anything in it. The lock is that of everybody, and is let go of.
func TestLockerNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(&memory.Options{TTL: ttl})
		b := c.Client("a")
		defer b.Close()
		l := adapter.NewLocker(b, "jobs", &adapter.LockerOptions{Hold: time.Hour})
		defer l.Close()
		held, err := l.Lock(t.Context(), "pkg.(*T).run/ä")
		if err != nil {
			t.Fatal(err)
		}
		const name = "jobs-pkg._28_2aT_29.run_2f_c3_a4"
		if len(c.Members(name)) != 1 {
			t.Errorf("nobody holds %s", name)
		}
		if _, err := l.Lock(t.Context(), "pkg.(*T).run/ä"); !errors.Is(err, lock.ErrLocked) || !strings.Contains(err.Error(), "run/ä") {
			t.Errorf("Lock of a job that runs: %v", err)
		}
		if err := held.Unlock(t.Context()); err != nil || len(c.Members(name)) != 1 {
			t.Errorf("Unlock: %v, and %d hold it; want that it is held on", err, len(c.Members(name)))
		}
		if err := l.Close(); err != nil || len(c.Members(name)) != 0 {
			t.Errorf("Close: %v, and %d hold it", err, len(c.Members(name)))
		}
	})
}

// A job does not run much too late because the coordinator was away.
func TestLockerOfACoordinatorThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(&memory.Options{TTL: ttl})
		b := c.Client("a")
		defer b.Close()
		l := adapter.NewLocker(b, "jobs", nil)
		defer l.Close()
		if _, err := b.Session(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.Cut()
		began := time.Now()
		if _, err := l.Lock(t.Context(), "send"); err == nil || time.Since(began) > 11*time.Second {
			t.Errorf("Lock returned %v after %v", err, time.Since(began))
		}
		b.Heal()
	})
}

// The same on the kernel of this machine.
func TestLocal(t *testing.T) {
	dir := t.TempDir()
	run := func(id string) (*adapter.Elector, *local.Backend) {
		b, err := local.New(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		x := adapter.NewElector(elect.New(b, "jobs", &elect.Options{ID: id}))
		t.Cleanup(func() { x.Close() })
		return x, b
	}
	ran := make(chan string, 100)
	job := func(x *adapter.Elector, id string) {
		s := scheduler(t, gocron.WithDistributedElector(x))
		if _, err := s.NewJob(gocron.DurationJob(20*time.Millisecond), gocron.NewTask(func() {
			select {
			case ran <- id:
			default:
			}
		})); err != nil {
			t.Fatal(err)
		}
		s.Start()
	}
	a, _ := run("a")
	job(a, "a")
	if id := <-ran; id != "a" {
		t.Errorf("the job runs on %s", id)
	}
	b, _ := run("b")
	job(b, "b")
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	for id := range ran {
		if id == "b" {
			break // what a had begun before may stand in front
		}
	}
	if err := a.IsLeader(t.Context()); err == nil {
		t.Error("a leads after Close")
	}
}
