package group_test

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/group"
	"github.com/succession-dev/succession/recipes/record"
)

// listOf is the lists of a record, which is what AssignEach takes.
func listOf(v *record.Value[[]string]) func(context.Context) iter.Seq2[[]string, error] {
	return func(ctx context.Context) iter.Seq2[[]string, error] {
		return func(yield func([]string, error) bool) {
			for e, err := range v.Follow(ctx) {
				if !yield(e.Value, err) {
					return
				}
			}
		}
	}
}

// The items change while members work on them: each is owned by one as soon as it is in the list, and by nobody when
// it is not.
func TestAssignEach(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		d := newDesk(t)
		console := record.New(bubble.Client(t, c, "console"), "sources", record.JSON[[]string]())
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error, 2)
		for _, id := range []string{"a", "b"} {
			b := bubble.Client(t, c, id)
			p := join(t, b, id, "")
			go func() {
				ended <- p.AssignEach(ctx, listOf(record.New(b, "sources", record.JSON[[]string]())), func(ctx context.Context, item string, t *elect.Term) error {
					d.begins(id, item, t)
					defer d.ends(item)
					<-ctx.Done()
					return nil
				})
			}()
		}
		for _, items := range [][]string{nil, someItems(4), someItems(8), someItems(8)[3:], {}, someItems(2)} {
			bubble.Must[backend.Version](t)(console.Set(t.Context(), items))
			owners := d.owners()
			if got, want := slices.Sorted(maps.Keys(owners)), slices.Sorted(slices.Values(items)); !slices.Equal(got, want) {
				t.Errorf("owned are %v, want %v", got, want)
			}
			each := make(map[string]int)
			for _, id := range owners {
				each[id]++
			}
			if diff := each["a"] - each["b"]; diff < -1 || diff > 1 {
				t.Errorf("of %d items a has %d and b %d", len(items), each["a"], each["b"])
			}
		}
		enough := errors.New("enough")
		cancel(enough)
		bubble.Want(t, <-ended, enough)
		bubble.Want(t, <-ended, enough)
		if left := d.owners(); len(left) > 0 {
			t.Errorf("when AssignEach has ended, these are worked on: %v", left)
		}
	})
}

// A list that is wrong, an error, and the end of the sequence end AssignEach, when all work has returned.
func TestAssignEachEnds(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		bad := errors.New("bad")
		for what, tt := range map[string]struct {
			last []string
			err  error
			want error
		}{
			"a list that is wrong": {[]string{"x", "x"}, nil, backend.ErrInvalid},
			"an error":             {nil, bad, bad},
			"the end":              {[]string{"y"}, nil, nil},
		} {
			p := join(t, bubble.Client(t, c, what), "a", "")
			begun, over := make(chan bool, 10), 0
			err := p.AssignEach(t.Context(), func(context.Context) iter.Seq2[[]string, error] {
				return func(yield func([]string, error) bool) {
					if yield([]string{"y"}, nil) {
						<-begun
						yield(tt.last, tt.err)
					}
				}
			}, func(ctx context.Context, item string, _ *elect.Term) error {
				begun <- true
				<-ctx.Done()
				over++
				return nil
			})
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("%s: AssignEach has returned %v", what, err)
			}
			if over != 1 {
				t.Errorf("%s: AssignEach has returned, and %d of one work has", what, over)
			}
			leave(t, p)
		}
		p := join(t, bubble.Client(t, c, "a"), "a", "")
		bubble.Want(t, p.AssignEach(t.Context(), nil, func(context.Context, string, *elect.Term) error { return nil }), backend.ErrInvalid)
	})
}

// AssignEach ends when work fails, and when the presence is lost, also while the sequence has no news.
func TestAssignEachEndsInSilence(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		failed := errors.New("failed")
		b := bubble.Client(t, c, "a")
		sources := record.New(b, "sources", record.JSON[[]string]())
		bubble.Must[backend.Version](t)(sources.Set(t.Context(), []string{"x"}))
		for _, tt := range []struct {
			what string
			end  func() error // ends work, which then returns its error
			want error
		}{
			{"work has failed", func() error { return failed }, failed},
			{"the presence was lost", func() error { b.Expire(); return nil }, elect.ErrLost},
		} {
			p := join(t, b, "a", "")
			ended := make(chan error, 1)
			go func() {
				ended <- p.AssignEach(t.Context(), listOf(sources), func(ctx context.Context, _ string, _ *elect.Term) error {
					synctest.Wait() // the sequence waits for the next list
					return tt.end()
				})
			}()
			select {
			case err := <-ended:
				bubble.Want(t, err, tt.want)
			case <-time.After(time.Hour):
				t.Fatalf("%s, and AssignEach has not returned", tt.what)
			}
			leave(t, p)
		}
	})
}

// Run joins again when the presence was lost, and returns what its function does.
func TestRun(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		b := bubble.Client(t, c, "a")
		g := group.New(b, "workers", &elect.Options{ID: "a"})
		ctx, cancel := context.WithCancelCause(t.Context())
		begun, ended := make(chan uint64, 10), make(chan error, 1)
		finish := make(chan error)
		go func() {
			ended <- g.Run(ctx, func(ctx context.Context, p *group.Presence) error {
				begun <- p.Token()
				select {
				case <-ctx.Done():
					return context.Cause(ctx)
				case err := <-finish:
					return err
				}
			})
		}()
		first := <-begun
		for _, lose := range []func(){b.Expire, func() { c.Remove("workers-members", c.Members("workers-members")[0].Key) }} {
			lose()
			if next := <-begun; next <= first {
				t.Errorf("it has joined again with token %d, after %d", next, first)
			} else {
				first = next
			}
			time.Sleep(3 * time.Second)
			expect(t, b, "a=")
		}
		failed := errors.New("failed")
		finish <- failed
		bubble.Want(t, <-ended, failed)
		expect(t, b, "")

		enough := errors.New("enough")
		go func() {
			ended <- g.Run(ctx, func(ctx context.Context, p *group.Presence) error { <-ctx.Done(); return nil })
		}()
		time.Sleep(time.Second)
		cancel(enough)
		bubble.Want(t, <-ended, enough)
		expect(t, b, "")
		bubble.Want(t, g.Run(t.Context(), nil), backend.ErrInvalid)
		if err := g.Run(t.Context(), func(ctx context.Context, p *group.Presence) error { return p.Leave(ctx) }); err != nil {
			t.Errorf("Run whose function has left: %v", err)
		}
	})
}
