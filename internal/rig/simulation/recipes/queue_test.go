package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/recipes/queue"
)

// A belt is what the world knows of its queue.
type belt struct {
	mu        sync.Mutex
	put       map[string]bool // values of which Put has succeeded
	confirmed map[string]int  // by their IDs
	done      map[string]bool // values of which some copy was confirmed, or may have been
}

func newQueue() recipe {
	belts := make(map[*world]*belt)
	var mu sync.Mutex
	of := func(w *world) *belt {
		mu.Lock()
		defer mu.Unlock()
		if belts[w] == nil {
			belts[w] = &belt{put: make(map[string]bool), confirmed: make(map[string]int), done: make(map[string]bool)}
		}
		return belts[w]
	}
	return recipe{
		processes: 2,
		process: func(w *world, p *process, worked func()) func(context.Context) error {
			q := queue.New(p.b, "queue", &queue.Options{Options: elect.Options{ID: p.Name(), ResignTimeout: 3 * time.Second}})
			if p.slot%2 == 0 {
				return func(ctx context.Context) error { return of(w).puts(ctx, p, q, worked) }
			}
			return func(ctx context.Context) error { return of(w).takes(ctx, w, p, q, worked) }
		},
		// All that was put is taken and confirmed in the end.
		end: func(w *world) {
			b := of(w)
			mu.Lock()
			delete(belts, w)
			mu.Unlock()
			last := w.c.Client("last")
			defer last.Close()
			q := queue.New(last, "queue", nil)
			for {
				item, err := q.TryTake(context.Background())
				if errors.Is(err, queue.ErrEmpty) {
					break
				}
				if err == nil {
					b.confirms(w, item)
					err = item.Done(context.Background())
				}
				if err != nil {
					w.fail("what is left in the queue: %v", err)
					return
				}
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			for value := range b.put {
				if !b.done[value] {
					w.fail("the item %s was put, and never confirmed", value)
				}
			}
		},
	}
}

func (b *belt) puts(ctx context.Context, p *process, q *queue.Queue, worked func()) error {
	for n := 0; ctx.Err() == nil; n++ {
		value := fmt.Sprintf("%s-%d", p.Name(), n)
		if _, err := q.Put(ctx, value); err != nil {
			return err
		}
		b.mu.Lock()
		b.put[value] = true
		b.mu.Unlock()
		worked()
		linger(ctx, 700*time.Millisecond)
	}
	return nil
}

func (b *belt) takes(ctx context.Context, w *world, p *process, q *queue.Queue, worked func()) error {
	for ctx.Err() == nil {
		item, err := q.Take(ctx)
		if err != nil {
			return err
		}
		worked()
		leave := w.enter(p, item.Term(), fmt.Sprintf("the item %s at %d", item.Value, item.Position), 1)
		w.works(item.Context(), ctx, p)
		err = item.Done(ctx) // also where the claim is lost: the coordinator must refuse it
		leave()
		switch {
		case err == nil:
			b.confirms(w, item)
		case errors.Is(err, queue.ErrLost): // perhaps only the answer was
			b.mu.Lock()
			b.done[item.Value] = true
			b.mu.Unlock()
		default:
			item.Return(context.WithoutCancel(ctx))
			if ctx.Err() == nil {
				return err
			}
		}
	}
	return nil
}

// confirms notes that an item was confirmed.
func (b *belt) confirms(w *world, item *queue.Item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := fmt.Sprintf("%s at %d", item.Value, item.Position)
	if b.confirmed[at]++; b.confirmed[at] > 1 {
		w.fail("the item %s was confirmed twice", at)
	}
	b.done[item.Value] = true
}

// jealous takes whoever else claims something for nobody.
type jealous struct{ backend.Session }

func (s jealous) Free(ctx context.Context, items, _ string) (backend.Member, error) {
	l, err := s.Head(ctx, items)
	if err == nil && len(l.Members) == 0 {
		err = backend.ErrTaken
	}
	if err != nil {
		return backend.Member{}, err
	}
	return l.Members[0], nil
}

func (s jealous) Claim(ctx context.Context, line, value, record string, _ backend.Member) (backend.Joined, error) {
	return s.JoinShared(ctx, line, value, record)
}
