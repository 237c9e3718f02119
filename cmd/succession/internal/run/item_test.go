//go:build unix

package run

import (
	"bytes"
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/queue"
)

// silent removes items, and withholds the answer.
type silent struct {
	backend.Backend
	removed chan struct{}
}

func (s silent) Session(ctx context.Context) (backend.Session, error) {
	session, err := s.Backend.Session(ctx)
	return silentSession{session, s.removed}, err
}

type silentSession struct {
	backend.Session
	removed chan struct{}
}

func (s silentSession) Remove(ctx context.Context, m, by backend.Member) error {
	err := s.Session.Remove(ctx, m, by)
	s.removed <- struct{}{}
	if err == nil {
		<-s.Done()
		err = backend.ErrSessionEnded
	}
	return err
}

// Whoever is not to wait for the answer does not say that the item was returned: it may have been removed.
func TestUnconfirmed(t *testing.T) {
	b := silent{memory.New(nil).Client("a"), make(chan struct{}, 1)}
	defer b.Close()
	q := queue.New(b, "mails", nil)
	if _, err := q.Put(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	item, err := q.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	r := &runner{signals: make(chan os.Signal, 2), report: newReporter(&said, logJSON, "mails", "a")}
	h, ended := held{item.Term(), item}, make(chan error, 1)
	go func() {
		ended <- r.confirm(&h)
		r.resign(h)
		r.report.close()
		close(ended)
	}()
	bound := time.After(10 * time.Second)
	select {
	case <-b.removed:
	case <-bound:
		t.Fatal("the item is not removed")
	}
	for range cap(r.signals) {
		r.signals <- syscall.SIGTERM
	}
	select {
	case err = <-ended:
	case <-bound:
		t.Fatal("the answer is waited for")
	}
	<-ended
	if text := said.String(); err == nil || !strings.Contains(text, `"unconfirmed"`) || strings.Contains(text, `"returned"`) {
		t.Errorf("%v, and it says\n%s", err, text)
	}
}
