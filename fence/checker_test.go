package fence_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/succession-dev/succession/fence"
)

// try shows the token, and returns whether the function has run.
func try(c *fence.Checker, resource string, token uint64) (ran bool, err error) {
	err = c.Do(context.Background(), resource, token, func(context.Context) error {
		ran = true
		return nil
	})
	return ran, err
}

func TestCheckerRefusesSmallerTokens(t *testing.T) {
	var c fence.Checker
	for i, s := range []struct{ token, largest uint64 }{{7, 7}, {7, 7}, {9, 9}, {7, 9}, {1 << 63, 1 << 63}, {9, 1 << 63}} {
		ran, err := try(&c, "accounts", s.token)
		if s.token == s.largest && (err != nil || !ran) {
			t.Errorf("step %d: token %d is refused: %v", i, s.token, err)
		}
		if s.token < s.largest {
			wantStale(t, err, fence.StaleError{Resource: "accounts", Token: s.token, Largest: s.largest})
			if ran {
				t.Errorf("step %d: the function ran", i)
			}
		}
	}
	if ran, err := try(&c, "letters", 7); !ran || err != nil {
		t.Errorf("another resource has seen the token: %v", err)
	}
	if got, want := c.Seen(), (map[string]uint64{"accounts": 1 << 63, "letters": 7}); !maps.Equal(got, want) {
		t.Errorf("seen %v, want %v", got, want)
	}
}

func TestCheckerRefusesZero(t *testing.T) {
	var c fence.Checker
	if ran, err := try(&c, "accounts", 0); ran || !errors.Is(err, fence.ErrInvalid) {
		t.Errorf("ran: %t, %v", ran, err)
	}
	if seen := c.Seen(); len(seen) != 0 {
		t.Errorf("seen %v", seen)
	}
}

func TestCheckerReturnsWhatTheFunctionReturns(t *testing.T) {
	var c fence.Checker
	full := errors.New("disk full")
	if err := c.Do(t.Context(), "accounts", 7, func(context.Context) error { return full }); err != full {
		t.Errorf("got %v", err)
	}
}

// A job runs in a Checker until it is told to end.
type job struct {
	end     chan struct{}
	running bool            // read it after synctest.Wait
	ctx     context.Context // of the function
	over    bool
	err     error // of Do
}

func start(ctx context.Context, c *fence.Checker, token uint64) *job {
	j := &job{end: make(chan struct{})}
	go func() {
		j.err = c.Do(ctx, "accounts", token, func(ctx context.Context) error {
			j.running, j.ctx = true, ctx
			<-j.end
			j.running = false
			return nil
		})
		j.over = true
	}()
	synctest.Wait()
	return j
}

func (j *job) finish() {
	close(j.end)
	synctest.Wait()
}

func TestCheckerKeepsTokensApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c fence.Checker
		old := start(t.Context(), &c, 5)
		same := start(t.Context(), &c, 5)
		if !old.running || !same.running {
			t.Fatal("a token waits for itself")
		}
		if old.ctx.Err() != nil || same.ctx.Err() != nil {
			t.Error("a context has ended before a larger token came")
		}

		later := start(t.Context(), &c, 7)
		for _, j := range []*job{old, same} {
			wantStale(t, context.Cause(j.ctx), fence.StaleError{Resource: "accounts", Token: 5, Largest: 7})
		}
		if ran, err := try(&c, "accounts", 5); ran || !errors.Is(err, fence.ErrStale) {
			t.Errorf("the larger token only waits, and the smaller one got in: %v", err)
		}
		if ran, err := try(&c, "letters", 5); !ran || err != nil {
			t.Errorf("another resource waits, too: %v", err)
		}
		if later.running {
			t.Error("two tokens run at the same time")
		}
		old.finish()
		if later.running {
			t.Error("the larger token did not wait for all")
		}
		same.finish()
		if !later.running || later.ctx.Err() != nil {
			t.Error("the larger token does not run, or its context has ended")
		}
		if old.err != nil || same.err != nil {
			t.Errorf("what ended before the larger token began has failed: %v, %v", old.err, same.err)
		}
		later.finish()
	})
}

// Who is overtaken while it waits does not run any more.
func TestCheckerOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c fence.Checker
		old := start(t.Context(), &c, 5)
		middle := start(t.Context(), &c, 7)
		last := start(t.Context(), &c, 9)
		old.finish()
		wantStale(t, middle.err, fence.StaleError{Resource: "accounts", Token: 7, Largest: 9})
		if !last.running {
			t.Error("the largest token does not run")
		}
		last.finish()
	})
}

func TestCheckerWaitsNoLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c fence.Checker
		old := start(t.Context(), &c, 5)
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		later := start(ctx, &c, 7)
		cancel(enough)
		synctest.Wait()
		if !later.over || later.err != enough {
			t.Errorf("over: %t, %v", later.over, later.err)
		}
		old.finish()
		if ran, err := try(&c, "accounts", 5); ran || !errors.Is(err, fence.ErrStale) {
			t.Errorf("the token was seen, and a smaller one got in: %v", err)
		}
	})
}

// The context of the function is that of the caller.
func TestCheckerContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c fence.Checker
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		j := start(ctx, &c, 5)
		cancel(enough)
		if got := context.Cause(j.ctx); got != enough {
			t.Errorf("the cause is %v", got)
		}
		j.finish()
	})
}

// To show a token alone is also to wait for the writes of earlier ones.
func TestCheckerWithoutFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c fence.Checker
		old := start(t.Context(), &c, 5)
		shown := false
		go func() {
			if err := c.Do(t.Context(), "accounts", 7, nil); err != nil {
				t.Error(err)
			}
			shown = true
		}()
		synctest.Wait()
		if shown {
			t.Error("it returned while a smaller token runs")
		}
		old.finish()
		if !shown {
			t.Error("it did not return")
		}
	})
}

func TestCheckerOutlivesPanics(t *testing.T) {
	var c fence.Checker
	func() {
		defer func() { recover() }()
		c.Do(t.Context(), "accounts", 5, func(context.Context) error { panic("at the disco") })
	}()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // it must not wait
	if err := c.Do(ctx, "accounts", 7, nil); err != nil {
		t.Error(err)
	}
}

func TestCheckerKeep(t *testing.T) {
	var kept []uint64
	full := errors.New("disk full")
	fail := false
	c := fence.Checker{Keep: func(_ context.Context, resource string, token uint64) error {
		if fail {
			return full
		}
		if resource != "accounts" {
			t.Errorf("kept for %q", resource)
		}
		kept = append(kept, token)
		return nil
	}}
	for _, token := range []uint64{5, 5, 7, 5, 7, 9} {
		c.Do(t.Context(), "accounts", token, func(context.Context) error {
			if kept[len(kept)-1] != token {
				t.Errorf("token %d runs, and %v were kept", token, kept)
			}
			return nil
		})
	}
	if want := []uint64{5, 7, 9}; !slices.Equal(kept, want) {
		t.Errorf("kept %v, want %v", kept, want)
	}

	// What could not be kept has not been seen, so that it is tried again.
	fail = true
	if ran, err := try(&c, "accounts", 11); ran || !errors.Is(err, full) {
		t.Errorf("ran: %t, %v", ran, err)
	}
	try(&c, "letters", 5)
	if got, want := c.Seen(), (map[string]uint64{"accounts": 9}); !maps.Equal(got, want) {
		t.Errorf("seen %v, want %v", got, want)
	}
	if ran, err := try(&c, "accounts", 9); !ran || err != nil {
		t.Errorf("ran: %t, %v", ran, err)
	}
	fail = false
	if ran, err := try(&c, "accounts", 11); !ran || err != nil {
		t.Errorf("ran: %t, %v", ran, err)
	}
}

// What was saved is restored, and lowers nothing.
func TestCheckerRestore(t *testing.T) {
	var before fence.Checker
	try(&before, "accounts", 1<<64-1) // more than a float64 can tell from its neighbours
	try(&before, "letters", 5)
	saved, err := json.Marshal(before.Seen())
	if err != nil {
		t.Fatal(err)
	}
	var seen map[string]uint64
	if err := json.Unmarshal(saved, &seen); err != nil {
		t.Fatal(err)
	}

	var c fence.Checker
	try(&c, "letters", 7)
	c.Restore(seen)
	if got, want := c.Seen(), (map[string]uint64{"accounts": 1<<64 - 1, "letters": 7}); !maps.Equal(got, want) {
		t.Errorf("seen %v, want %v", got, want)
	}
	_, err = try(&c, "accounts", 1<<64-2)
	wantStale(t, err, fence.StaleError{Resource: "accounts", Token: 1<<64 - 2, Largest: 1<<64 - 1})
}

// Functions with different tokens need no lock of their own, which the race detector
// checks, and run with growing tokens.
func TestCheckerConcurrently(t *testing.T) {
	var c fence.Checker
	resources := []string{"accounts", "letters"}
	history := map[string]*[]uint64{"accounts": {}, "letters": {}}
	tokens := rand.Perm(2000) // each is used once
	var all sync.WaitGroup
	for part := range slices.Chunk(tokens, 100) {
		all.Go(func() {
			for _, n := range part {
				token, resource := uint64(n)+1, resources[n%2]
				err := c.Do(context.Background(), resource, token, func(context.Context) error {
					h := history[resource]
					*h = append(*h, token)
					return nil
				})
				if err != nil && !errors.Is(err, fence.ErrStale) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for resource, h := range history {
		if !slices.IsSorted(*h) {
			t.Errorf("%s was written with tokens that fall: %v", resource, *h)
		}
	}
	if got, want := c.Seen(), (map[string]uint64{"accounts": 1999, "letters": 2000}); !maps.Equal(got, want) {
		t.Errorf("seen %v, want %v", got, want)
	}
}
