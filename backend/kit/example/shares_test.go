package example

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/recipes/lock"
	"github.com/succession-dev/succession/recipes/task"
)

// Where there are no shared members, what needs them fails at once, and stands nowhere: also if somebody holds the line in which it
// would wait for its turn.
func TestWithoutSharedMembers(t *testing.T) {
	c, err := newClient(t, newOperator(t).addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for line, call := range map[string]func() error{
		"a-waiting": func() error {
			_, err := lock.NewSemaphore(c, "a", 1, nil).Acquire(ctx)
			return err
		},
		"b-master": func() error {
			return task.NewPool(c, "b", nil).Work(ctx, func(context.Context, *task.Task) (string, error) { return "", nil })
		},
	} {
		held, err := lock.NewMutex(c, line, nil).Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		before := c.requests.Load()
		if err := call(); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("beside who stands in %s: %v, want %v", line, err, errors.ErrUnsupported)
		}
		if n := c.requests.Load() - before; n > 3 { // heartbeats
			t.Errorf("beside who stands in %s it has sent %d requests", line, n)
		}
		held.Unlock(ctx)
	}
	s, err := c.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for what, item := range map[string]backend.Member{"none": {}, "one": {Line: "a", Key: "k", Position: 1}} {
		if _, err := s.Claim(ctx, "a", "", "", item); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("a claim of %s: %v, want %v", what, err, errors.ErrUnsupported)
		}
	}
}
