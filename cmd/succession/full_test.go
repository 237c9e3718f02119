//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/elect"
)

// The URL full:NAME is the coordinator memory:NAME when its disk is full.
func init() {
	coordinator.Register(coordinator.Driver{Scheme: "full", Open: func(u *coordinator.URL) (backend.Backend, error) {
		b, err := succession.Open("memory:" + u.Path)
		return fullDisk{b}, err
	}})
}

type fullDisk struct{ backend.Backend }

func (b fullDisk) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	return fullSession{s}, err
}

type fullSession struct{ backend.Session }

func (fullSession) Put(context.Context, string, []byte, *backend.If) (backend.Version, error) {
	return 0, fmt.Errorf("%w: no space left on device", backend.ErrUnavailable)
}

// Who cannot ask because the disk is full says so, whichever limit comes first, and does not doubt the URL.
func TestResignOnAFullDisk(t *testing.T) {
	for _, timeout := range []string{"1s", "1m"} {
		synctest.Test(t, func(t *testing.T) {
			url, c := inMemory(t)
			b := c.Client("leader")
			defer b.Close()
			term, err := elect.New(b, "reports", nil).Campaign(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer term.Resign(t.Context())
			code, _, stderr := here("--url", strings.Replace(url, "memory:", "full:", 1), "--timeout", timeout, "resign", "reports")
			if code != 125 || !strings.Contains(stderr, "no space left on device") || strings.Contains(stderr, "--url right") {
				t.Errorf("--timeout %s: exit code %d, standard error %q", timeout, code, stderr)
			}
		})
	}
}

// A result that cannot be written is none.
func TestOutputOnAFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for _, args := range []string{"leader reports", "leader reports -o json", "line reports", "fence reports --at-least 7"} {
		url, _ := lineOf(t, "web-1")
		var stderr strings.Builder
		if code := execute(append([]string{"--url", url}, strings.Fields(args)...), full, &stderr); code != 125 || !strings.Contains(stderr.String(), "no space left") {
			t.Errorf("%s: exit code %d, standard error %q", args, code, stderr.String())
		}
	}
}

// The same on this machine, where the system says what is wrong.
func TestResignWhereNothingCanBeWritten(t *testing.T) {
	dir := t.TempDir()
	p := start(t, "--url", "local:"+dir, "run", "--history", "0", "reports", "--", "sleep", "1000")
	p.event("started")
	// A folder in the place of the file makes every write of a record fail.
	obstacle := filepath.Join(dir, "@tmp-0000000000000000")
	if err := os.MkdirAll(filepath.Join(obstacle, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := here("--url", "local:"+dir, "resign", "reports")
	if code != 125 || !strings.Contains(stderr, obstacle) {
		t.Errorf("exit code %d, standard error %q", code, stderr)
	}
}
