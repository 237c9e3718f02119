package lock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/lock"
)

// One process writes at a time. The token tells the store which of two writes is the later one.
func ExampleMutex_Lock() {
	ctx := context.Background()
	b := memory.New(nil).Client("web-1") // or succession.Connect(ctx, os.Getenv("SUCCESSION_URL"))
	defer b.Close()

	held, err := lock.NewMutex(b, "reports/2026", nil).Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer held.Unlock(ctx)
	fmt.Println("writing with token", held.Token())
	// Output: writing with token 1
}

// A job that another process works on already is left to it.
func ExampleMutex_TryLock() {
	ctx := context.Background()
	c := memory.New(nil)
	a, b := c.Client("web-1"), c.Client("web-2")
	defer a.Close()
	defer b.Close()

	held, err := lock.NewMutex(a, "reports/2026", nil).TryLock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer held.Unlock(ctx)
	_, err = lock.NewMutex(b, "reports/2026", nil).TryLock(ctx)
	fmt.Println("web-2 goes on with other work:", errors.Is(err, lock.ErrLocked))
	// Output: web-2 goes on with other work: true
}

// A transfer locks both accounts. Another one in the opposite direction does not wait for it for
// ever.
func ExampleAll() {
	ctx := context.Background()
	b := memory.New(nil).Client("web-1")
	defer b.Close()

	both, err := lock.All(ctx, lock.NewMutex(b, "account/bob", nil), lock.NewMutex(b, "account/alice", nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer both.Unlock(ctx)
	for _, one := range both.Locks() {
		fmt.Println(one)
	}
	// Output:
	// term of "account/alice" with token 1
	// term of "account/bob" with token 2
}

// Readers share the lock. A writer waits for them, and they for it.
func ExampleRWMutex() {
	ctx := context.Background()
	c := memory.New(nil)
	a, b := c.Client("web-1"), c.Client("web-2")
	defer a.Close()
	defer b.Close()

	one, err := lock.NewRWMutex(a, "catalogue", nil).RLock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer one.Unlock(ctx)
	other := lock.NewRWMutex(b, "catalogue", nil)
	two, err := other.RLock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer two.Unlock(ctx)
	_, err = other.TryLock(ctx)
	fmt.Println("a writer has to wait:", errors.Is(err, lock.ErrLocked))
	// Output: a writer has to wait: true
}

// At most two processes call the slow service at a time.
func ExampleSemaphore() {
	ctx := context.Background()
	b := memory.New(nil).Client("web-1")
	defer b.Close()

	slots := lock.NewSemaphore(b, "slow-service", 2, nil)
	for range 2 {
		slot, err := slots.Acquire(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer slot.Unlock(ctx)
	}
	_, err := slots.TryAcquire(ctx)
	fmt.Println("the third has to wait:", errors.Is(err, lock.ErrLocked))
	// Output: the third has to wait: true
}
