package linear_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/conformance/linear"
	"github.com/succession-dev/succession/internal/rig/lane"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/memory"
)

// What the reference keeps fits an order, and each planted mistake does not, whatever faults there are.
func TestFlaws(t *testing.T) {
	lane.Unraced(t)
	lag := &times{made: make(map[string]int), heard: make(map[backend.Session]int)}
	for _, flaw := range []struct {
		name  string
		wrong string // the history that shows it; empty for none
		wrap  func(backend.Session) backend.Session
	}{
		{"none", "", nil},
		{"none: reads lag behind until a Refresh", "", func(s backend.Session) backend.Session { return behind{s, lag} }},
		{"the version is compared before the write and not with it", "records", func(s backend.Session) backend.Session { return readThenWrite{s} }},
		{"a record that is made anew is taken for the one before", "records", func(s backend.Session) backend.Session { return anyIncarnation{s} }},
		{"a read is one write late", "records", func(s backend.Session) backend.Session { return late{s} }},
		{"an item is confirmed without its claim", "items", func(s backend.Session) backend.Session { return unclaimed{s} }},
		{"an item is said to be removed and stands", "items", func(s backend.Session) backend.Session { return kept{s} }},
		{"an item is lost when it is put", "items", func(s backend.Session) backend.Session { return lossy{s} }},
		{"the member is looked for before the write and not with it", "locks", func(s backend.Session) backend.Session { return unguarded{s} }},
		{"everybody is first", "locks", func(s backend.Session) backend.Session { return &view.Asked{Session: first{s}} }},
	} {
		t.Run(flaw.name, func(t *testing.T) {
			var all []*linear.History
			synctest.Test(t, func(t *testing.T) {
				var err error
				if all, err = linear.Record(t.Context(), harness(flaw.wrap), &linear.Options{Log: t.Logf}); err != nil {
					t.Fatal(err)
				}
			})
			found := false
			for _, h := range all {
				err := h.Check()
				switch {
				case err != nil && flaw.wrong == "":
					t.Error(err)
				case err != nil && strings.HasPrefix(err.Error(), flaw.wrong+":"):
					found = true
					t.Log(err)
				}
			}
			if !found && flaw.wrong != "" {
				t.Errorf("%s fit an order", flaw.wrong)
			}
		})
	}
}

// harness is one coordinator of package memory, whose sessions wrap changes.
func harness(wrap func(backend.Session) backend.Session) conformance.Harness {
	const ttl = 10 * time.Second
	c := memory.New(&memory.Options{TTL: ttl})
	var mu sync.Mutex
	raw := make(map[backend.Backend]*memory.Backend)
	of := func(b backend.Backend) *memory.Backend {
		mu.Lock()
		defer mu.Unlock()
		return raw[b]
	}
	h := conformance.Harness{TTL: ttl, Open: func(context.Context) (backend.Backend, error) {
		mu.Lock()
		defer mu.Unlock()
		m := c.Client(fmt.Sprint(len(raw)))
		m.Delay(20*time.Millisecond, 20*time.Millisecond)
		var b backend.Backend = m
		if wrap != nil {
			b = view.Of(m, wrap)
		}
		raw[b] = m
		return b, nil
	}}
	h.Faults.Cut = func(b backend.Backend) func() { of(b).Cut(); return of(b).Heal }
	h.Faults.Deafen = func(b backend.Backend) func() { of(b).CutAnswers(); return of(b).Heal }
	h.Faults.Expire = func(_ context.Context, b backend.Backend) error { of(b).Expire(); return nil }
	h.Faults.Kill = func(b backend.Backend) { of(b).Kill() }
	h.Faults.LoseAnswer = func(b backend.Backend) {
		of(b).LoseAnswer(memory.OpPut, memory.OpDelete, memory.OpRemove, memory.OpAppend)
	}
	h.Faults.Restart = func(context.Context) error { c.Restart(); return nil }
	h.Faults.Pause = func(context.Context) (func(), error) { c.Pause(); return c.Resume, nil }
	return h
}

type readThenWrite struct{ backend.Session }

func (s readThenWrite) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	if cond == nil || cond.Version == backend.Any {
		return s.Session.Put(ctx, name, value, cond)
	}
	r, err := s.Get(ctx, name)
	if err == nil && r.Version != cond.Version {
		err = backend.ErrVersion
	}
	if err != nil {
		return 0, err
	}
	return s.Session.Put(ctx, name, value, &backend.If{Member: cond.Member})
}

type anyIncarnation struct{ backend.Session }

func (s anyIncarnation) Delete(ctx context.Context, name string, cond *backend.If) error {
	r, err := s.Get(ctx, name)
	if err == nil && cond != nil && cond.Version > 0 && r.Version == cond.Version {
		cond = &backend.If{Member: cond.Member}
	}
	return s.Session.Delete(ctx, name, cond)
}

type late struct{ backend.Session }

// seen is what each session has read last, by the session and the name.
var seen sync.Map

func (s late) Get(ctx context.Context, name string) (backend.Record, error) {
	r, err := s.Session.Get(ctx, name)
	if err != nil {
		return r, err
	}
	if before, known := seen.Swap([2]any{s.Session, name}, r); known {
		return before.(backend.Record), nil
	}
	return r, nil
}

// behind reads records as from a server that lags behind, which the contract allows: it has not heard of a record that others
// have made since the session's last Refresh, its last write, or the last read that showed what is there.
type behind struct {
	backend.Session
	*times
}

// times are those of the writes and reads of all clients.
type times struct {
	mu    sync.Mutex
	now   int
	made  map[string]int          // when a record was made
	heard map[backend.Session]int // until when a session has heard of everything
}

func (s behind) hears() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now++
	s.heard[s.Session] = s.now
	return s.now
}

func (s behind) Get(ctx context.Context, name string) (backend.Record, error) {
	s.mu.Lock()
	unheard := s.made[name] > s.heard[s.Session]
	s.mu.Unlock()
	if unheard {
		return backend.Record{Name: name, Version: backend.Absent}, nil
	}
	defer s.hears()
	return s.Session.Get(ctx, name)
}

func (s behind) Refresh(ctx context.Context) error {
	s.hears()
	return s.Session.Refresh(ctx)
}

func (s behind) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	at := s.hears()
	v, err := s.Session.Put(ctx, name, value, cond)
	if err == nil && cond != nil && cond.Version == backend.Absent && strings.Contains(name, "/records/") {
		s.mu.Lock()
		s.made[name] = at
		s.mu.Unlock()
	}
	return v, err
}

func (s behind) Delete(ctx context.Context, name string, cond *backend.If) error {
	defer s.hears()
	return s.Session.Delete(ctx, name, cond)
}

type unclaimed struct{ backend.Session }

func (s unclaimed) Remove(ctx context.Context, m, by backend.Member) error {
	err := s.Session.Remove(ctx, m, by)
	if err != nil {
		return nil
	}
	return err
}

type kept struct{ backend.Session }

func (s kept) Remove(ctx context.Context, m, by backend.Member) error {
	if m.Position%8 == 0 {
		return nil
	}
	return s.Session.Remove(ctx, m, by)
}

type lossy struct{ backend.Session }

func (s lossy) Append(ctx context.Context, line, value string) (backend.Member, error) {
	m, err := s.Session.Append(ctx, line, value)
	if err == nil && m.Position%8 == 0 {
		var by backend.Joined
		if by, err = s.Session.Join(ctx, line+"-lossy", "", ""); err == nil {
			err = s.Session.Remove(ctx, m, by.Member)
		}
	}
	return m, err
}

type unguarded struct{ backend.Session }

func (s unguarded) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	if cond != nil && cond.Member.Key != "" {
		if _, err := s.Ahead(ctx, cond.Member); err != nil {
			return 0, err
		}
		time.Sleep(200 * time.Millisecond)
		cond = &backend.If{Version: cond.Version}
	}
	return s.Session.Put(ctx, name, value, cond)
}

type first struct{ backend.Session }

func (s first) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if err == nil && !p.First {
		p = backend.Place{First: true, Token: m.Position, Header: p.Header}
	}
	return p, err
}
