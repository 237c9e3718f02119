package kit_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	drivers "github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/backend/kit/backoff"
)

// A lacking session has nothing that can be left out, and fails at all else.
type lacking struct {
	*kit.Life
	kit.NoPins
	kit.NoRecords
	kit.NoItems
	kit.NoShares
	kit.NoLines
	kit.NoSurvey
	kit.NoImports
	others
}

func (*lacking) Join(context.Context, string, string, string) (backend.Joined, error) {
	return backend.Joined{}, errRan
}
func (*lacking) Ahead(context.Context, backend.Member) (backend.Place, error) {
	return backend.Place{}, errRan
}
func (*lacking) WatchPlace(context.Context, backend.Member, *backend.Place) error { return errRan }
func (*lacking) Gone(context.Context, backend.Member) error                       { return errRan }
func (*lacking) Leave(context.Context, backend.Member) error                      { return errRan }
func (*lacking) Line(context.Context, string) (backend.Line, error)               { return backend.Line{}, errRan }
func (*lacking) Head(context.Context, string) (backend.Line, error)               { return backend.Line{}, errRan }
func (*lacking) WatchLine(context.Context, string, backend.Line) (backend.Line, error) {
	return backend.Line{}, errRan
}
func (*lacking) Outlived(context.Context, string, string) (bool, error) { return false, errRan }
func (*lacking) Refresh(context.Context) error                          { return errRan }
func (s *lacking) Err() error                                           { return s.Life.Err() }
func (s *lacking) Done() <-chan struct{}                                { return s.Life.Done() }
func (s *lacking) Close(ctx context.Context) error                      { return s.Life.Close(ctx) }
func (s *lacking) OnEnd(f func(error)) func()                           { return s.Life.OnEnd(f) }
func (s *lacking) TraceHeartbeats(f func(backend.Heartbeat)) func()     { return s.Life.TraceHeartbeats(f) }

// driver returns the sessions of a driver, as the test opens them.
func driver(open func(b **kit.Sessions) (kit.Session, error)) *kit.Sessions {
	var b *kit.Sessions
	b = kit.NewSessions(kit.Config{
		Scheme: "test", Connect: 4 * time.Second, Patience: 2 * time.Second,
		Open: func(context.Context) (kit.Session, error) { return open(&b) },
	})
	return b
}

func released(context.Context) error { return nil }

// Each method of the contract passes on what the driver says, explained, and with the names of the operation and of what it is
// about. It refuses names that are not allowed.
func TestContract(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := driver(func(b **kit.Sessions) (kit.Session, error) {
			return &lacking{Life: (*b).NewLife(kit.Rules{Release: released, Explain: func(_ context.Context, err error) error {
				return fmt.Errorf("explained: %w", err)
			}})}, nil
		})
		defer b.Close()
		s, err := b.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		item := backend.Member{Line: "items", Key: "i", Position: 1, Pinned: true}
		of := map[string]reflect.Type{"ctx": reflect.TypeFor[context.Context](), "err": reflect.TypeFor[error]()}
		call := func(m reflect.Method, name string, ctx context.Context) error {
			args := []reflect.Value{reflect.ValueOf(s), reflect.ValueOf(ctx)}
			strings := 0
			for i := 2; i < m.Type.NumIn(); i++ {
				switch in := m.Type.In(i); {
				case in == reflect.TypeFor[string]():
					if strings++; m.Name == "Claim" && strings == 2 {
						args = append(args, reflect.ValueOf("web-1\n"+kit.Subject(item)))
					} else {
						args = append(args, reflect.ValueOf(name))
					}
				case in == reflect.TypeFor[backend.Member]() && m.Name == "Claim":
					args = append(args, reflect.ValueOf(item))
				case in == reflect.TypeFor[backend.Member]():
					args = append(args, reflect.ValueOf(backend.Member{Line: name, Key: "k", Position: 3}))
				case in == reflect.TypeFor[*backend.Place]():
					args = append(args, reflect.ValueOf(new(backend.Place)))
				default:
					args = append(args, reflect.Zero(in))
				}
			}
			out := m.Func.Call(args)
			err, _ := out[len(out)-1].Interface().(error)
			return err
		}
		n := 0
		for i := range reflect.TypeOf(s).NumMethod() {
			m := reflect.TypeOf(s).Method(i)
			if m.Type.NumIn() < 2 || m.Type.In(1) != of["ctx"] || m.Type.NumOut() == 0 || m.Type.Out(m.Type.NumOut()-1) != of["err"] || m.Name == "Close" || m.Name == "Usable" {
				continue
			}
			n++
			err := call(m, "jobs", t.Context())
			var wrapped *backend.Error
			if !errors.Is(err, errRan) && !errors.Is(err, errors.ErrUnsupported) || !errors.As(err, &wrapped) || wrapped.Backend != "test" ||
				!strings.HasPrefix(wrapped.Err.Error(), "explained: ") || wrapped.Name != "jobs" && m.Name != "Lines" && m.Name != "Survey" && m.Name != "Refresh" {
				t.Errorf("%s: %v", m.Name, err)
			}
			if errors.As(wrapped.Err, &wrapped) {
				t.Errorf("%s: %v is wrapped twice", m.Name, err)
			}
			gone, cancel := context.WithCancelCause(t.Context())
			cancel(context.DeadlineExceeded)
			if err := call(m, "jobs", gone); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errRan) {
				t.Errorf("%s in a context that has ended: %v", m.Name, err)
			}
			if m.Name == "Lines" || m.Name == "Survey" || m.Name == "Refresh" {
				continue
			}
			if err := call(m, "jobs//x", t.Context()); !errors.Is(err, backend.ErrInvalid) {
				t.Errorf("%s of a name that is not allowed: %v", m.Name, err)
			}
		}
		if n < 20 {
			t.Errorf("only %d methods were called", n)
		}
		// The record that a join returns may be none.
		if _, err := s.Join(t.Context(), "jobs", "a", ""); !errors.Is(err, errRan) {
			t.Errorf("Join without a record: %v", err)
		}
	})
}

// A kept session keeps the contexts of its calls.
type kept struct {
	lacking
	ctx context.Context
}

func (s *kept) Get(ctx context.Context, _ string) (backend.Record, error) {
	s.ctx = ctx
	return backend.Record{}, nil
}

func (s *kept) WatchPlace(ctx context.Context, _ backend.Member, _ *backend.Place) error {
	s.ctx = ctx
	return nil
}

// The context of a call ends with the call, and a session of many calls keeps nothing of them.
func TestCallsAreForgotten(t *testing.T) {
	k := new(kept)
	b := driver(func(b **kit.Sessions) (kit.Session, error) {
		k.Life = (*b).NewLife(kit.Rules{Release: released})
		return k, nil
	})
	defer b.Close()
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	used := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := used()
	for range 20000 {
		if _, err := s.Get(t.Context(), "jobs"); err != nil || k.ctx.Err() == nil {
			t.Fatalf("Get: %v, and its context goes on: %t", err, k.ctx.Err() == nil)
		}
		if err := s.WatchPlace(t.Context(), backend.Member{Line: "jobs"}, new(backend.Place)); err != nil || k.ctx.Err() == nil {
			t.Fatalf("WatchPlace: %v, and its context goes on: %t", err, k.ctx.Err() == nil)
		}
	}
	if now := used(); now > before+1<<20 {
		t.Errorf("40000 calls have left %d bytes", now-before)
	}
}

// The end of a session is told with the reason, makes its deadline pass, and comes once.
func TestEndOfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(0, 0)
		defer c.sessions.Close()
		if c.sessions.Newest() != nil {
			t.Error("there is a session before the first")
		}
		s := open(t, c).Session.(*session)
		if c.sessions.Newest() != kit.Session(s) {
			t.Error("the newest session is another")
		}
		var told []error
		s.Life.OnEnd(func(why error) { told = append(told, why) })
		s.End(errRan)
		s.End(errors.New("again"))
		if left := s.lease.Left(); left > 0 {
			t.Errorf("%v are left of a session that has ended", left)
		}
		if len(told) != 1 || !saysRan(told[0]) {
			t.Errorf("told of %v", told)
		}
		ran := false
		s.Start(func() { ran = true })
		if s.Go(func() { ran = true }) {
			t.Error("Go says that it runs")
		}
		synctest.Wait()
		if ran {
			t.Error("something was begun in a session that had ended")
		}
		next := open(t, c).Session.(*session)
		next.End(fmt.Errorf("%w: it was taken", backend.ErrSessionEnded))
		if n := strings.Count(next.Err().Error(), backend.ErrSessionEnded.Error()); n != 1 {
			t.Errorf("%v", next.Err())
		}
		gone, cancel := context.WithCancelCause(t.Context())
		cancel(errRan)
		for range 2 { // without a live session, and with one
			if _, err := c.sessions.Session(gone); !errors.Is(err, errRan) {
				t.Errorf("Session in a context that has ended: %v", err)
			}
			open(t, c)
		}
	})
}

// Close says of the sessions that it waits for whether they were released, and not of others that were over before.
func TestCloseTellsOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fails error = errRan
		b := driver(func(b **kit.Sessions) (kit.Session, error) {
			why := fails
			return &lacking{Life: (*b).NewLife(kit.Rules{Release: func(context.Context) error { return why }, Stands: func() string { return "Friday" }})}, nil
		})
		s, err := b.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // also when it is over
			if err := s.Close(t.Context()); !errors.Is(err, errRan) {
				t.Errorf("Close of the session: %v", err)
			}
		}
		fails = nil
		if _, err := b.Session(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); err != nil {
			t.Errorf("Close of the backend: %v", err)
		}
	})
}

// A session that is opened after Close has given up waiting for it is ended, and its caller is told that the backend is closed.
func TestOpeningThatHeedsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := make(chan error, 1)
		b := driver(func(b **kit.Sessions) (kit.Session, error) {
			time.Sleep(3 * time.Second)
			l := (*b).NewLife(kit.Rules{Release: func(context.Context) error { over <- nil; return nil }})
			l.Start(func() { <-l.Context().Done() })
			return &lacking{Life: l}, nil
		})
		go b.Session(t.Context())
		synctest.Wait()
		began := time.Now()
		b.Close()
		if d := time.Since(began); d != 3*time.Second || len(over) != 1 {
			t.Errorf("Close took %v, and %d sessions were released", d, len(over))
		}
	})
}

// A session that was still being opened when the backend was closed has joined nothing, so Close tells nothing of it.
func TestCloseTellsNothingOfAnOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := kit.NewSessions(kit.Config{Scheme: "test", Connect: 4 * time.Second, Patience: 2 * time.Second})
		b.Open = func(ctx context.Context) (kit.Session, error) {
			l := b.NewLife(kit.Rules{Release: func(context.Context) error { return errRan }, Stands: func() string { return "Friday" }})
			<-ctx.Done()
			l.End(errRan)
			return nil, context.Cause(ctx)
		}
		go b.Session(t.Context())
		synctest.Wait()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A deadline that has been moved is looked at again when it comes, and a session that is over by it ends unasked.
func TestDeadlineIsLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left, looks atomic.Int64
		left.Store(int64(10 * time.Second))
		ends := func() time.Duration { return time.Duration(left.Load()) }
		var running atomic.Bool
		began := time.Now()
		b := driver(func(b **kit.Sessions) (kit.Session, error) {
			l := (*b).NewLife(kit.Rules{Release: released, Left: func() time.Duration { looks.Add(1); return ends() - time.Since(began) }, Over: func() error {
				if time.Since(began) < ends() {
					return nil
				}
				return errRan
			}})
			l.Start(func() { running.Store(true) })
			return &lacking{Life: l}, nil
		})
		defer b.Close()
		s, err := b.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !running.Load() {
			t.Error("what the session needs does not run")
		}
		time.Sleep(5 * time.Second)
		left.Store(int64(25 * time.Second))
		<-s.Done()
		if d := time.Since(began); d != ends() || looks.Load() != 2 {
			t.Errorf("it has ended after %v, and was looked at %d times; want after %v, and twice", d, looks.Load(), ends())
		}
	})
}

func TestRetry(t *testing.T) {
	passing := func(err error) bool { return errors.Is(err, backend.ErrUnavailable) }
	for _, tt := range []struct {
		name  string
		errs  []error
		ends  bool // the context ends in the first pause
		want  error
		calls int
	}{
		{"at once", []error{nil}, false, nil, 1},
		{"later", []error{backend.ErrUnavailable, backend.ErrUnavailable, nil}, false, nil, 3},
		{"never", []error{backend.ErrUnavailable, errRan}, false, errRan, 2},
		{"in time", []error{backend.ErrUnavailable, nil}, true, context.DeadlineExceeded, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			if tt.ends {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, time.Millisecond)
				defer cancel()
			}
			calls := 0
			v, err := kit.Retry(ctx, backoff.New(ctx), passing, func(context.Context) (int, error) {
				calls++
				return calls, tt.errs[calls-1]
			})
			if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) || calls != tt.calls || err == nil && v != calls {
				t.Errorf("%s: %d, %v after %d calls", tt.name, v, err, calls)
			}
		})
	}
}

// If the context ends in a call of Retry that is not the first, the error says why there was more than one.
func TestRetryIsCutOff(t *testing.T) {
	away, over := fmt.Errorf("%w: away", backend.ErrUnavailable), errors.New("over")
	synctest.Test(t, func(t *testing.T) {
		for before := range 3 {
			calls := before
			ctx, cancel := context.WithCancelCause(t.Context())
			_, err := kit.Retry(ctx, backoff.New(ctx), func(err error) bool { return err == away }, func(ctx context.Context) (int, error) {
				if calls--; calls >= 0 {
					return 0, away
				}
				cancel(over)
				return 0, context.Cause(ctx)
			})
			if !errors.Is(err, over) || errors.Is(err, backend.ErrUnavailable) != (before > 0) {
				t.Errorf("cut off after %d calls: %v", before, err)
			}
		}
	})
}

// records are a folder; an empty value is one that was deleted after it was listed, and "denied" one that may not be read.
type records map[string]string

func (r records) List(context.Context, string) ([]string, error) {
	if r == nil {
		return nil, errRan
	}
	return []string{"a", "b", "c"}, nil
}

func (r records) Get(_ context.Context, name string) (backend.Record, error) {
	switch r[name] {
	case "":
		return backend.Record{Name: name, Version: backend.Absent}, nil
	case "denied":
		return backend.Record{}, backend.ErrDenied
	}
	return backend.Record{Name: name, Version: 1, Value: []byte(r[name])}, nil
}

func TestReadEach(t *testing.T) {
	read := func(r records) (string, error) {
		all, err := kit.ReadEach(t.Context(), struct {
			records
			rest
		}{records: r}, "jobs")
		names := ""
		for _, one := range all {
			names += one.Name
		}
		return names, err
	}
	if got, err := read(records{"a": "x", "c": "y"}); got != "ac" || err != nil {
		t.Errorf("read %q, %v; want those that are there", got, err)
	}
	if _, err := read(records{"a": "x", "b": "denied"}); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("one may not be read: %v", err)
	}
	if _, err := read(nil); !errors.Is(err, errRan) {
		t.Errorf("they cannot be listed: %v", err)
	}
}

// rest has the other methods of records; they lie deeper.
type rest struct{ restOf }
type restOf struct{ backend.Session }

// What cannot be opened is nil.
func TestOpener(t *testing.T) {
	b, err := kit.Opener(func(*drivers.URL) (*opened, error) { return nil, errRan })(nil)
	if b != nil || err != errRan {
		t.Errorf("%v, %v", b, err)
	}
}

type opened struct{ backend.Backend }

func TestWrap(t *testing.T) {
	if err := kit.Scheme("test").Wrap("get", "x", nil); err != nil {
		t.Error(err)
	}
	once := kit.Scheme("test").Wrap("get", "x", errRan)
	if twice := kit.Scheme("other").Wrap("put", "y", fmt.Errorf("more: %w", once)); twice.Error() != "more: "+once.Error() {
		t.Error(twice)
	}
}

// A text of a kilobyte is shown whole, and of a longer one the first kilobyte.
func TestClipAtItsLength(t *testing.T) {
	for n, clipped := range map[int]bool{1024: false, 1025: true} {
		text := strings.Repeat("x", n)
		for _, got := range []string{kit.Clip(text), kit.Brief(errors.New(text)).Error()} {
			if (got != text) != clipped || strings.Count(got, "x") != 1024 {
				t.Errorf("%d bytes are shown as %d", n, len(got))
			}
		}
	}
}
