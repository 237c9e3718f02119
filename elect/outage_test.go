package elect_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
)

// A coordinator that is away is told once for all elections of a process, now and then, and when it is back.
func TestOutageIsToldOnce(t *testing.T) {
	const elections = 50
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b := client(t, c, "a")
		var mu sync.Mutex
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(lockedBuffer{&mu, &log}, nil)) // without Debug
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var running sync.WaitGroup
		for i := range elections {
			e := elect.New(b, fmt.Sprint("job-", i), &elect.Options{Logger: logger})
			running.Go(func() {
				_ = e.Run(ctx, func(ctx context.Context, _ *elect.Term) error { <-ctx.Done(); return nil })
			})
		}
		lines := func(what string) int {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return strings.Count(log.String(), what)
		}
		time.Sleep(10 * time.Second)
		b.Cut()
		time.Sleep(10 * time.Minute)
		if n := lines("campaign interrupted"); n < 5 || n > 12 {
			t.Errorf("in ten minutes %d lines say that the coordinator is away, want about ten", n)
		}
		if n := lines(fmt.Sprintf("elections=%d", elections)); n == 0 {
			t.Errorf("no line counts the %d elections that it concerns", elections)
		}
		b.Heal()
		time.Sleep(time.Minute)
		if n := lines("joined again"); n != 1 {
			t.Errorf("%d lines say that the coordinator is back, want 1", n)
		}
		if n := lines("msg=elected"); n != 2*elections {
			t.Errorf("%d elections were won, want each of %d twice", n, elections)
		}
		b.Cut() // another outage is told at once
		was := lines("campaign interrupted")
		time.Sleep(30 * time.Second)
		if n := lines("campaign interrupted") - was; n != 1 {
			t.Errorf("%d lines tell of the next outage, want 1", n)
		}
		b.Heal()
		cancel()
		running.Wait()
	})
}

type lockedBuffer struct {
	mu *sync.Mutex
	b  *bytes.Buffer
}

func (l lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}
