//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
)

// The URL late:NAME is the coordinator memory:NAME, which is not there when it is asked for the first time. late:never does not
// answer.
func init() {
	coordinator.Register(coordinator.Driver{Scheme: "late", Open: func(u *coordinator.URL) (backend.Backend, error) {
		b, err := succession.Open("memory:" + u.Path)
		return late{b, u.Path}, err
	}})
}

type late struct {
	backend.Backend
	name string
}

var (
	lateUntil  atomic.Pointer[string]    // the name of the coordinator that is there by now
	lateBounds = make(chan time.Time, 9) // until when those wait who open a session
)

func (b late) Session(ctx context.Context) (backend.Session, error) {
	if until, ok := ctx.Deadline(); ok {
		select {
		case lateBounds <- until:
		default: // nobody wants to know
		}
	}
	if b.name == "never" {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	if was := lateUntil.Swap(&b.name); was == nil || *was != b.name {
		return nil, fmt.Errorf("%w: it comes later", backend.ErrUnavailable)
	}
	return b.Backend.Session(ctx)
}

// --wait bounds the first connection and the waiting in line together.
func TestWaitIsOneBound(t *testing.T) {
	line, _ := lineOf(t, "web-1")
	for url, want := range map[string]int{strings.Replace(line, "memory:", "late:", 1): ui.ExitTimeout, "late:never": ui.ExitFailed} {
		for len(lateBounds) > 0 {
			<-lateBounds
		}
		begin := time.Now()
		code, _, stderr := here("--url", url, "run", "--wait", "1s", "reports", "--", "true")
		if code != want || !strings.Contains(stderr, "within 1s") {
			t.Errorf("%s: exit code %d, standard error\n%s\nwant exit code %d", url, code, stderr, want)
		}
		bound := <-lateBounds
		if bound.Before(begin.Add(time.Second)) {
			t.Errorf("%s: it waits until %v, and began at %v", url, bound, begin)
		}
		for len(lateBounds) > 0 {
			if next := <-lateBounds; !next.Equal(bound) {
				t.Errorf("%s: it waits until %v, and then until %v", url, bound, next)
			}
		}
	}
}

// Who would wait for its turn waits for the coordinator too, and says so; --connect-timeout and --try bound it.
func TestRunBeforeTheCoordinator(t *testing.T) {
	for name, test := range map[string]struct {
		flags []string
		code  int
	}{
		"waits":   {nil, 0},
		"bounded": {[]string{"--connect-timeout", "0"}, ui.ExitFailed},
		"tries":   {[]string{"--try"}, ui.ExitFailed},
	} {
		args := append([]string{"--url", "late:" + name, "run", "--log", "text", "--history", "0"}, test.flags...)
		code, _, stderr := result(t, append(args, "reports", "--", "true")...) // in a process of its own, with its guard
		if code != test.code || strings.Contains(stderr, "waiting for the coordinator: ") != (code == 0) || !strings.Contains(stderr, "it comes later") {
			t.Errorf("%s: exit code %d, standard error\n%s\nwant exit code %d", name, code, stderr, test.code)
		}
	}
}
