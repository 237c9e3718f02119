//go:build unix

package run

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
)

// shorter gives each session after the first a third of its time.
type shorter struct {
	backend.Backend
	first backend.Session
	mu    sync.Mutex
}

func (b *shorter) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil || b.first == nil || s == b.first {
		b.first = s
		return s, err
	}
	return short{s}, nil
}

type short struct{ backend.Session }

func (s short) TTL() time.Duration       { return s.Session.TTL() / 3 }
func (s short) MaxMargin() time.Duration { return s.Session.MaxMargin() / 3 }

// The default grace time is that of the session that there is, also where that has come later and has a shorter time.
func TestDefaultGraceOfAShorterSession(t *testing.T) {
	const ttl = 30 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c := memory.New(&memory.Options{TTL: ttl})
	front := c.Client("front")
	defer front.Close()
	leader, err := elect.New(front, "reports", nil).Campaign(ctx)
	if err != nil {
		t.Fatal(err)
	}
	behind := c.Client("behind")
	defer behind.Close()
	b := &shorter{Backend: behind}
	lines, out := io.Pipe()
	r := &runner{o: runOptions{right: right{take: lead, won: "elected leader of"}, id: "behind"}, name: "reports", since: time.Now(),
		signals: make(chan os.Signal, 1), bound: func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, cancel },
		report: newReporter(out, logJSON, "reports", "behind")}
	waits := make(chan struct{}, 9)
	go func() {
		for said := bufio.NewScanner(lines); said.Scan(); {
			if strings.Contains(said.Text(), `"waiting"`) {
				waits <- struct{}{}
			}
		}
	}()
	type result struct {
		h   held
		err error
	}
	ended := make(chan result, 1)
	go func() {
		h, err := r.campaign(b)
		ended <- result{h, err}
	}()
	for _, then := range []func() error{
		func() error { return b.first.Close(ctx) },
		func() error { return leader.Resign(ctx) },
	} {
		select {
		case <-waits:
		case e := <-ended:
			t.Fatalf("it does not wait: %v", e.err)
		case <-ctx.Done():
			t.Fatal("it does not wait")
		}
		if err := then(); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case e := <-ended:
		if e.err != nil || r.grace != ttl/3/5 {
			t.Errorf("%v, with a grace time of %v", e.err, r.grace)
		}
	case <-ctx.Done():
		t.Error("it does not lead")
	}
}
