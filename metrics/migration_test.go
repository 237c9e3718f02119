package metrics_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/metrics"
	"github.com/succession-dev/succession/migrate"
)

// The phase that a recorder tells is that of the migration, soon after each step.
func TestFollowMigration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := memory.New(nil), memory.New(nil)
		b := migrate.New(from.Client("a"), to.Client("a"), &migrate.Options{From: "memory:from", To: "memory:to"})
		m := metrics.New(nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			m.FollowMigration(ctx, b, "reports", 0)
			close(ended)
		}()
		is := func(p migrate.Phase) {
			t.Helper()
			synctest.Wait()
			for _, other := range []migrate.Phase{migrate.None, migrate.Begun, migrate.Aborted, migrate.Moved} {
				v := 0.0
				if other == p {
					v = 1
				}
				want(t, m, v, "succession_migration_phase", "reports", string(other))
			}
		}
		is(migrate.None)
		if _, err := b.Begin(t.Context(), "reports"); err != nil {
			t.Fatal(err)
		}
		is(migrate.None)
		time.Sleep(15 * time.Second)
		is(migrate.Begun)
		if _, err := b.Abort(t.Context(), "reports"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Second)
		is(migrate.Aborted)
		cancel()
		<-ended
		b.Close()
	})
}

type failing struct{ calls int }

func (f *failing) Status(context.Context, string) (migrate.Status, error) {
	if f.calls++; f.calls == 1 {
		return migrate.Status{Phase: migrate.Asked}, nil
	}
	return migrate.Status{}, errors.New("not reached")
}

// A coordinator that cannot be reached takes no series away.
func TestFollowMigrationThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := metrics.New(nil)
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		f := new(failing)
		m.FollowMigration(ctx, f, "reports", time.Second)
		if f.calls != 4 {
			t.Errorf("it has asked %d times in 3.5 s, want 4", f.calls)
		}
		want(t, m, 1, "succession_migration_phase", "reports", "asked")
	})
}
