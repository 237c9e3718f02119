package recipes_test

import (
	"context"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/recipes/record"
)

// A tally is what the world knows of its number.
type tally struct {
	mu   sync.Mutex
	done int         // how many calls of Update have added one, and have returned
	seen map[int]int // what those who follow have seen last, by their slots
}

func newValue() recipe {
	tallies := make(map[*world]*tally)
	var mu sync.Mutex
	return recipe{
		processes: 3,
		process: func(w *world, p *process, worked func()) func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			if tallies[w] == nil {
				tallies[w] = &tally{seen: make(map[int]int)}
			}
			t, v := tallies[w], record.New(p.b, "number", record.JSON[int]())
			if p.slot%2 == 0 {
				return func(ctx context.Context) error { return t.adds(ctx, w, p, v, worked) }
			}
			return func(ctx context.Context) error { return t.follows(ctx, w, p, v, worked) }
		},
		calm: func(w *world) {
			mu.Lock()
			t := tallies[w]
			delete(tallies, w)
			mu.Unlock()
			t.mu.Lock()
			least := t.done
			t.mu.Unlock()
			time.Sleep(5 * time.Second)
			t.mu.Lock()
			defer t.mu.Unlock()
			for _, p := range w.processes {
				if p.slot%2 != 0 && t.seen[p.slot] < least {
					w.fail("%s has seen %d, five seconds after the number was %d", p.Name(), t.seen[p.slot], least)
				}
			}
		},
	}
}

// adds adds to the number. No call may undo what another has done.
func (t *tally) adds(ctx context.Context, w *world, p *process, v *record.Value[int], worked func()) error {
	for ctx.Err() == nil {
		t.mu.Lock()
		before := t.done
		t.mu.Unlock()
		e, err := v.Update(ctx, func(n int) (int, error) { return n + 1, nil })
		if err != nil {
			return err
		}
		t.mu.Lock()
		t.done++
		t.mu.Unlock()
		if e.Value <= before {
			w.fail("%s has made the number %d, and before that %d had added one", p.Name(), e.Value, before)
		}
		worked()
		linger(ctx, 300*time.Millisecond)
	}
	return nil
}

// follows follows the number, which never falls.
func (t *tally) follows(ctx context.Context, w *world, p *process, v *record.Value[int], worked func()) error {
	last := 0
	for e, err := range v.Follow(ctx) {
		if err != nil {
			return err
		}
		if e.Value < last {
			w.fail("%s sees %d after %d", p.Name(), e.Value, last)
		}
		last = e.Value
		t.mu.Lock()
		t.seen[p.slot] = last
		t.mu.Unlock()
		worked()
	}
	return nil
}

// careless writes whatever version the record has.
type careless struct{ backend.Session }

func (s careless) Put(ctx context.Context, name string, value []byte, _ *backend.If) (backend.Version, error) {
	return s.Session.Put(ctx, name, value, nil)
}

// outdated does not look at a record that it has seen before.
type outdated struct{ backend.Session }

func (s outdated) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	if after == 0 {
		return s.Session.Watch(ctx, name, after)
	}
	<-ctx.Done()
	return backend.Record{}, context.Cause(ctx)
}
