package etcd_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/recipes/lock"
)

// TestForeignMutex has the Mutex of etcd's Go client, ours, and our readers stand in one line.
// To the foreign one a reader is like any other.
func TestForeignMutex(t *testing.T) {
	t.Parallel()
	addr := sharedEtcd(t).Addrs()[0]
	name := coordtest.Name(t)
	ours := newClient(t, addr)
	s := ours.session(t)
	rw := lock.NewRWMutex(ours.Backend, name, nil)

	// asked asks for the lock, and returns when it stands in line as the nth.
	asked := func(n int, call func(ctx context.Context) error) <-chan struct{} {
		t.Helper()
		done := make(chan struct{})
		go func() {
			if err := call(t.Context()); err != nil {
				t.Error(err)
				return
			}
			close(done)
		}()
		inLine(t, s, name, n)
		return done
	}
	mine := func(n int, call func(ctx context.Context) (*lock.Held, error)) (<-chan struct{}, *lock.Held) {
		held := new(lock.Held)
		return asked(n, func(ctx context.Context) error {
			h, err := call(ctx)
			if err == nil {
				*held = *h
			}
			return err
		}), held
	}
	foreign := func() *concurrency.Mutex {
		session, err := concurrency.NewSession(admin(t, addr), concurrency.WithTTL(30))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { session.Close() })
		return concurrency.NewMutex(session, name)
	}
	unlock := func(unlock func(context.Context) error) {
		t.Helper()
		if err := unlock(within(t, time.Minute)); err != nil {
			t.Fatal(err)
		}
	}

	first, last := foreign(), foreign()
	awaits(t, asked(1, first.Lock), "the foreign mutex is locked")
	write, writer := mine(2, lock.NewMutex(ours.Backend, name, nil).Lock)
	readA, readerA := mine(3, rw.RLock)
	readB, readerB := mine(4, rw.RLock)
	foreignLast := asked(5, last.Lock)

	waiting(t, write, "our mutex is locked behind a foreign one")
	unlock(first.Unlock)
	awaits(t, write, "our mutex is locked")
	waiting(t, readA, "a reader reads behind a writer")
	unlock(writer.Unlock)
	awaits(t, readA, "the first reader reads")
	awaits(t, readB, "the second reader reads")
	unlock(readerB.Unlock)
	waiting(t, foreignLast, "the foreign mutex is locked behind a reader")
	unlock(readerA.Unlock)
	awaits(t, foreignLast, "the last mutex is locked")
	if _, err := rw.TryRLock(t.Context()); !errors.Is(err, lock.ErrLocked) {
		t.Errorf("a reader tries beside a foreign mutex: %v, want ErrLocked", err)
	}
	unlock(last.Unlock)
}
