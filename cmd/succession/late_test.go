//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
)

// The URL late:NAME is the coordinator memory:NAME, which is not there when it is asked for the first time.
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

var lateUntil atomic.Pointer[string] // the name of the coordinator that is there by now

func (b late) Session(ctx context.Context) (backend.Session, error) {
	if was := lateUntil.Swap(&b.name); was == nil || *was != b.name {
		return nil, fmt.Errorf("%w: it comes later", backend.ErrUnavailable)
	}
	return b.Backend.Session(ctx)
}

// The URL until:NAME is the coordinator memory:NAME, which notes when those who open a session wait no longer. The one called
// nobody never answers.
func init() {
	coordinator.Register(coordinator.Driver{Scheme: "until", Open: func(u *coordinator.URL) (backend.Backend, error) {
		b, err := succession.Open("memory:" + u.Path)
		return until{b, u.Path}, err
	}})
}

type until struct {
	backend.Backend
	name string
}

var untilWhen struct { // they wait
	sync.Mutex
	all []time.Time
}

func (b until) Session(ctx context.Context) (backend.Session, error) {
	untilWhen.Lock()
	when, _ := ctx.Deadline()
	untilWhen.all = append(untilWhen.all, when)
	untilWhen.Unlock()
	if b.name == "nobody" {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return b.Backend.Session(ctx)
}

// --wait bounds the first connection and the waiting in line together.
func TestWaitIsOneBound(t *testing.T) {
	begin := time.Now()
	wait := func(url string, wait time.Duration, want int) []time.Time {
		untilWhen.all = nil
		code, _, stderr := here("--url", url, "run", "--wait", wait.String(), "reports", "--", "true")
		if code != want || !strings.Contains(stderr, "within "+wait.String()) {
			t.Errorf("%s: exit code %d, standard error\n%s\nwant exit code %d", url, code, stderr, want)
		}
		return untilWhen.all
	}
	url, _ := lineOf(t, "web-1")
	all := wait(strings.Replace(url, "memory:", "until:", 1), time.Second, ui.ExitTimeout)
	if len(all) < 2 || !all[0].Equal(all[1]) || all[0].Before(begin.Add(time.Second)) {
		t.Errorf("it began at %v; those who open a session wait until %v, want the same", begin, all)
	}
	wait("until:nobody", 10*time.Millisecond, ui.ExitFailed)
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
