package record_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCompareAndSet(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		ctx := t.Context()
		v := record.New(bubble.Client(t, c, "a"), "config/limit", record.JSON[int]())
		if e := bubble.Must[record.Entry[int]](t)(v.Get(ctx)); e.Exists() || e.Value != 0 {
			t.Errorf("before the first write: %+v", e)
		}
		first := bubble.Must[backend.Version](t)(v.CompareAndSet(ctx, backend.Absent, 1))
		_, err := v.CompareAndSet(ctx, backend.Absent, 2)
		bubble.Want(t, err, backend.ErrVersion)
		second := bubble.Must[backend.Version](t)(v.CompareAndSet(ctx, first, 2))
		_, err = v.CompareAndSet(ctx, first, 3)
		bubble.Want(t, err, backend.ErrVersion)
		_, err = v.CompareAndSet(ctx, 0, 3)
		bubble.Want(t, err, backend.ErrInvalid)
		if e := bubble.Must[record.Entry[int]](t)(v.Get(ctx)); e.Value != 2 || e.Version != second {
			t.Errorf("the record is %+v, want 2 at %d", e, second)
		}
		bubble.Want(t, v.Delete(ctx, first), backend.ErrVersion)
		if err := v.Delete(ctx, second); err != nil {
			t.Error(err)
		}
		if e := bubble.Must[record.Entry[int]](t)(v.Get(ctx)); e.Exists() {
			t.Errorf("after the deletion: %+v", e)
		}
	})
}

// Nothing is lost when many update at once, also if answers are.
func TestUpdateLosesNothing(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		var done sync.WaitGroup
		const clients, times = 5, 20
		for i := range clients {
			b := bubble.Client(t, c, fmt.Sprint(i))
			v := record.New(b, "names", record.JSON[map[string]bool]())
			done.Go(func() {
				for k := range times {
					if k%7 == i {
						b.LoseAnswer(memory.OpPut)
					}
					name := fmt.Sprint(i, "-", k)
					_, err := v.Update(t.Context(), func(names map[string]bool) (map[string]bool, error) {
						if names == nil {
							names = make(map[string]bool)
						}
						names[name] = true
						return names, nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		done.Wait()
		e := bubble.Must[record.Entry[map[string]bool]](t)(record.New(bubble.Client(t, c, "reader"), "names", record.JSON[map[string]bool]()).Get(t.Context()))
		if len(e.Value) != clients*times {
			t.Errorf("%d names, want %d", len(e.Value), clients*times)
		}
	})
}

func TestUpdateThatFails(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		v := record.New(bubble.Client(t, c, "a"), "x", record.Text())
		at := bubble.Must[backend.Version](t)(v.Set(t.Context(), "old"))
		full := errors.New("full")
		_, err := v.Update(t.Context(), func(string) (string, error) { return "new", full })
		bubble.Want(t, err, full)
		if e := bubble.Must[record.Entry[string]](t)(v.Get(t.Context())); e.Value != "old" || e.Version != at {
			t.Errorf("the record is %+v", e)
		}
	})
}

// A leader that was replaced, and does not know it, cannot move the record.
func TestSetAs(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		a := bubble.Client(t, c, "a")
		v := record.New(a, "reports-position", record.JSON[int]())
		term := bubble.Must[*elect.Term](t)(elect.New(a, "reports", nil).Campaign(t.Context()))
		at := bubble.Must[backend.Version](t)(v.SetAs(t.Context(), term, 0, 1))
		c.Remove("reports", term.Member().Key)
		_, err := v.SetAs(t.Context(), term, at, 2)
		bubble.Want(t, err, backend.ErrNotMember)
		if e := bubble.Must[record.Entry[int]](t)(v.Get(t.Context())); e.Value != 1 {
			t.Errorf("the record is %+v", e)
		}
		term.Resign(t.Context())
	})
}

// follow sends what Follow yields.
func follow[T any](t *testing.T, ctx context.Context, v *record.Value[T]) (<-chan record.Entry[T], <-chan error) {
	entries, errs := make(chan record.Entry[T], 1000), make(chan error, 1000)
	go func() {
		defer close(entries)
		for e, err := range v.Follow(ctx) {
			if err != nil {
				errs <- err
			} else {
				entries <- e
			}
		}
	}()
	synctest.Wait()
	return entries, errs
}

func TestFollow(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithCancelCause(t.Context())
		w := record.New(bubble.Client(t, c, "writer"), "config", record.Text())
		entries, errs := follow(t, ctx, record.New(bubble.Client(t, c, "reader"), "config", record.Text()))
		if len(entries) != 1 {
			t.Errorf("got %d states at once, want that there is no record", len(entries))
		}
		sees := func(text string, exists bool) {
			t.Helper()
			time.Sleep(time.Second)
			select {
			case e := <-entries:
				if e.Value != text || e.Exists() != exists {
					t.Errorf("got %+v, want %q", e, text)
				}
			default:
				t.Errorf("got nothing, want %q", text)
			}
			if len(entries) > 0 {
				t.Errorf("got %+v besides", <-entries)
			}
		}
		sees("", false)
		for _, text := range []string{"one", "two", ""} {
			bubble.Must[backend.Version](t)(w.Set(ctx, text))
			sees(text, true)
		}
		if err := w.Delete(ctx, backend.Any); err != nil {
			t.Fatal(err)
		}
		sees("", false)
		bubble.Must[backend.Version](t)(w.Set(ctx, "again"))
		sees("again", true)
		time.Sleep(5 * bubble.TTL) // many a second look
		if len(entries) != 0 {
			t.Errorf("got %+v, and nothing has changed", <-entries)
		}
		enough := errors.New("enough")
		cancel(enough)
		if err := <-errs; err != enough {
			t.Errorf("got %v, want the cause of the context and no more: nothing was wrong", err)
		}
		if _, open := <-entries; open {
			t.Error("it goes on after its context has ended")
		}
	})
}

// Follow lives through the end of its session, and shows the newest value then.
func TestFollowThroughFaults(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithCancel(t.Context())
		w := record.New(bubble.Client(t, c, "writer"), "config", record.JSON[int]())
		b := bubble.Client(t, c, "reader")
		entries, errs := follow(t, ctx, record.New(b, "config", record.JSON[int]()))
		last := 0
		for n := 1; n <= 12; n++ {
			switch n % 4 {
			case 1:
				b.Cut()
			case 3:
				b.Heal()
			case 0:
				b.Expire()
			}
			bubble.Must[backend.Version](t)(w.Set(ctx, n))
			time.Sleep(bubble.TTL)
		}
		time.Sleep(3 * bubble.TTL)
		for len(entries) > 0 {
			if e := <-entries; e.Value < last {
				t.Errorf("%d after %d", e.Value, last)
			} else {
				last = e.Value
			}
		}
		if last != 12 {
			t.Errorf("the last that it saw is %d, want 12", last)
		}
		cancel()
		bubble.Want(t, <-errs, context.Canceled)
		<-entries
	})
}

// A laggingSession has a server that lags behind until it is refreshed. It shows that there is an earlier state of the record.
type laggingSession struct {
	backend.Session
	earlier *atomic.Pointer[backend.Record]
}

func (s laggingSession) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	if r := s.earlier.Load(); r != nil && r.Version != after {
		return *r, nil
	}
	return s.Session.Watch(ctx, name, after)
}

func (s laggingSession) Refresh(ctx context.Context) error {
	s.earlier.Store(nil)
	return s.Session.Refresh(ctx)
}

// Where the server of the next session lags behind, for however long, Follow does not go back. What has been deleted meanwhile is not
// there any more.
func TestFollowNeverGoesBack(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithCancel(t.Context())
		w := record.New(bubble.Client(t, c, "writer"), "config", record.Text())
		b, earlier := bubble.Client(t, c, "reader"), new(atomic.Pointer[backend.Record])
		lagging := view.Of(b, func(s backend.Session) backend.Session { return laggingSession{s, earlier} })
		entries, errs := follow(t, ctx, record.New(lagging, "config", record.Text()))
		sees := func(text string) {
			t.Helper()
			if e := <-entries; e.Value != text {
				t.Errorf("got %+v, want %q", e, text)
			}
		}
		sees("")
		none := c.Record("config")
		bubble.Must[backend.Version](t)(w.Set(ctx, "one"))
		sees("one")
		one := c.Record("config")
		bubble.Must[backend.Version](t)(w.Set(ctx, "two"))
		sees("two")
		two := c.Record("config")
		for _, r := range []backend.Record{one, none} {
			synctest.Wait()
			earlier.Store(&r)
			b.Expire()
			time.Sleep(3 * bubble.TTL)
			if len(entries) > 0 {
				t.Errorf("it goes back: %+v", <-entries)
			}
		}
		b.Cut()
		bubble.Want(t, w.Delete(ctx, backend.Any), nil)
		time.Sleep(3 * bubble.TTL)
		earlier.Store(&one)
		b.Heal()
		sees("")
		for _, r := range []backend.Record{one, two} {
			synctest.Wait()
			earlier.Store(&r)
			b.Expire()
			time.Sleep(3 * bubble.TTL)
			if len(entries) > 0 {
				t.Errorf("it goes back after a deletion: %+v", <-entries)
			}
		}
		cancel()
		bubble.Want(t, <-errs, context.Canceled)
		<-entries
	})
}

// A record that was deleted before Follow began has been shown as none, and does not come back with the next session.
func TestFollowDoesNotGoBackBeforeItsBeginning(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithCancel(t.Context())
		w := record.New(bubble.Client(t, c, "writer"), "config", record.Text())
		bubble.Must[backend.Version](t)(w.Set(ctx, "one"))
		one := c.Record("config")
		bubble.Want(t, w.Delete(ctx, backend.Any), nil)
		b, earlier := bubble.Client(t, c, "reader"), new(atomic.Pointer[backend.Record])
		lagging := view.Of(b, func(s backend.Session) backend.Session { return laggingSession{s, earlier} })
		entries, errs := follow(t, ctx, record.New(lagging, "config", record.Text()))
		if e := <-entries; e.Exists() {
			t.Errorf("got %+v, want none", e)
		}
		synctest.Wait()
		earlier.Store(&one)
		b.Expire()
		time.Sleep(3 * bubble.TTL)
		if len(entries) > 0 {
			t.Errorf("it goes back: %+v", <-entries)
		}
		bubble.Must[backend.Version](t)(w.Set(ctx, "two"))
		if e := <-entries; e.Value != "two" {
			t.Errorf("got %+v, want two", e)
		}
		cancel()
		bubble.Want(t, <-errs, context.Canceled)
		<-entries
	})
}

// What cannot be decoded is said, and does not end the sequence.
func TestDecode(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithCancel(t.Context())
		raw := record.New(bubble.Client(t, c, "stranger"), "config", record.Bytes())
		v := record.New(bubble.Client(t, c, "a"), "config", record.JSON[int]())
		at := bubble.Must[backend.Version](t)(raw.Set(ctx, []byte("1 2")))
		e, err := v.Get(ctx)
		bubble.Want(t, err, record.ErrDecode)
		if e.Version != at || !strings.Contains(err.Error(), "config") {
			t.Errorf("%+v, %v", e, err)
		}
		_, err = v.Update(ctx, func(int) (int, error) { return 1, nil })
		bubble.Want(t, err, record.ErrDecode)
		entries, errs := follow(t, ctx, v)
		bubble.Want(t, <-errs, record.ErrDecode)
		bubble.Must[backend.Version](t)(v.CompareAndSet(ctx, e.Version, 7))
		if e := <-entries; e.Value != 7 {
			t.Errorf("after it was mended: %+v", e)
		}
		cancel()
		<-entries
	})
}

func TestArguments(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		b := bubble.Client(t, c, "a")
		_, err := record.New(b, "no//name", record.Text()).Get(t.Context())
		bubble.Want(t, err, backend.ErrInvalid)
		for _, err := range record.New(b, "no//name", record.Text()).Follow(t.Context()) {
			bubble.Want(t, err, backend.ErrInvalid)
		}
		v := record.New(b, "x", record.Text())
		_, err = v.Set(t.Context(), "\xff")
		bubble.Want(t, err, backend.ErrInvalid)
		_, err = v.Set(t.Context(), strings.Repeat("x", backend.MaxRecord+1))
		bubble.Want(t, err, backend.ErrInvalid)
		if e := bubble.Must[record.Entry[string]](t)(v.Get(t.Context())); e.Exists() {
			t.Errorf("what was refused has been written: %+v", e)
		}
	})
}

// A handle whose server has not heard of the record deletes it all the same.
func TestDeleteWhereServerLags(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		ctx := t.Context()
		w, b := record.New(bubble.Client(t, c, "writer"), "x", record.Text()), bubble.Lags(bubble.Client(t, c, "a"))
		bubble.Must[record.Entry[string]](t)(record.New(b, "x", record.Text()).Get(ctx))
		bubble.Must[backend.Version](t)(w.Set(ctx, "old"))
		b.Lag()
		bubble.Want(t, record.New(b, "x", record.Text()).Delete(ctx, backend.Any), nil)
		if r := c.Record("x"); r.Version != backend.Absent {
			t.Errorf("Delete has returned nil, and the record is %q", r.Value)
		}
		bubble.Want(t, w.Delete(ctx, backend.Any), nil)    // there is none
		bubble.Want(t, w.Delete(ctx, backend.Absent), nil) // nor here
		bubble.Must[backend.Version](t)(w.Set(ctx, "new"))
		bubble.Want(t, w.Delete(ctx, backend.Absent), backend.ErrVersion)
	})
}

func TestList(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, w, b := t.Context(), bubble.Client(t, c, "writer"), bubble.Lags(bubble.Client(t, c, "a"))
		list := func() (map[string]record.Entry[int], error) { return record.List(ctx, b, "config", record.JSON[int]()) }
		if all := bubble.Must[map[string]record.Entry[int]](t)(list()); len(all) != 0 {
			t.Errorf("before the first write: %v", all)
		}
		want := make(map[string]record.Entry[int])
		for i, name := range []string{"config/a", "config/b", "config/b/below", "configs"} {
			at := bubble.Must[backend.Version](t)(record.New(w, name, record.JSON[int]()).Set(ctx, i))
			if i < 2 {
				want[name] = record.Entry[int]{Value: i, Version: at}
			}
		}
		b.Lag()
		if all := bubble.Must[map[string]record.Entry[int]](t)(list()); !maps.Equal(all, want) {
			t.Errorf("listed are %v, want %v", all, want)
		}
		bubble.Must[backend.Version](t)(record.New(w, "config/c", record.Text()).Set(ctx, "?"))
		all, err := list()
		if bubble.Want(t, err, record.ErrDecode); !maps.Equal(all, want) || !strings.Contains(err.Error(), "config/c") {
			t.Errorf("beside one that is refused, listed are %v, want %v; %v", all, want, err)
		}
		_, err = record.List(ctx, b, "no//name", record.Text())
		bubble.Want(t, err, backend.ErrInvalid)
	})
}

func FuzzJSON(f *testing.F) {
	for _, seed := range []string{"1", "", "{}", "1 2", "\x00", `"\ud800"`} {
		f.Add([]byte(seed))
	}
	codec := record.JSON[map[string]any]()
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := codec.Decode(b)
		if err != nil {
			return
		}
		again, err := codec.Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := codec.Decode(again); err != nil {
			t.Errorf("%q was decoded, encoded to %q, and is refused: %v", b, again, err)
		}
	})
}
