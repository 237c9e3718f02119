package elect_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/clock"
	"github.com/succession-dev/succession/backend/kit/lease"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
)

// A leased backend has sessions whose deadline is kept by package clock, as those of remote
// coordinators are. It is never moved ahead.
type leased struct {
	backend.Backend
	lease *lease.Lease
	asked chan struct{} // gets a value when somebody asks for a deadline
}

func (b leased) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	return leasedSession{s, b}, err
}

type leasedSession struct {
	backend.Session
	b leased
}

func (s leasedSession) Deadline() time.Time {
	s.b.asked <- struct{}{}
	return s.b.lease.Deadline()
}

// leasedTerm returns a term of an hour, the watch over which has begun.
func leasedTerm(t *testing.T) *elect.Term {
	t.Helper()
	b := client(t, memory.New(&memory.Options{TTL: time.Hour}), "a")
	asked := make(chan struct{}, 100)
	l := new(lease.Lease)
	l.Extend(clock.Now(), time.Hour)
	term, err := elect.New(leased{b, l, asked}, "reports", nil).Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { term.Resign(context.Background()) })
	for range 3 { // by the campaign, by a check, and for the timer
		<-asked
	}
	return term
}

// When the machine was suspended for longer than the session, who asks is told at once.
func TestCheckCountsASuspension(t *testing.T) {
	term := leasedTerm(t)
	clock.Suspend(2 * time.Hour)
	if err := term.Check(); !errors.Is(err, elect.ErrDeadline) {
		t.Errorf("after a suspension for two session times Check says %v, want ErrDeadline", err)
	}
}

// The term's context ends as the machine goes on, and nobody has to ask.
func TestContextEndsAfterASuspension(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("timers of this system do not count suspension")
	}
	term := leasedTerm(t)
	clock.Suspend(2 * time.Hour)
	select {
	case <-term.Context().Done():
	case <-time.After(10 * time.Second):
		t.Fatal("10 s after a suspension for two session times the term's context has not ended")
	}
	if cause := context.Cause(term.Context()); !errors.Is(cause, elect.ErrDeadline) {
		t.Errorf("the cause is %v, want ErrDeadline", cause)
	}
}
