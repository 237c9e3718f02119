//go:build linux

package local

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
)

// A session that is closed while one looks at a line does not wait for that one for ever, nor that one for the session.
func TestCloseWhileOneLooks(t *testing.T) {
	b, err := New(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	_, err = b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := b.sessions.Newest().(*session)
	if _, err := s.Join(t.Context(), "e", "x", ""); err != nil { // makes @lock
		t.Fatal(err)
	}
	closed, looked := make(chan error, 1), make(chan bool, 1)
	go func() {
		done, err := s.dir.lookAt("e", func() error {
			go func() { closed <- s.Close(t.Context()) }()
			<-s.Done()
			for range 100 { // until the session lets go of its members, or has done so
				if !s.mu.TryLock() {
					break
				}
				s.mu.Unlock()
				time.Sleep(time.Millisecond)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			return nil
		})
		looked <- done && err == nil
	}()
	late := time.After(10 * time.Second)
	select {
	case ok := <-looked:
		if !ok {
			t.Error("it could not look")
		}
	case <-late:
		t.Fatal("who looks waits for the session, which waits for it")
	}
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-late:
		t.Fatal("the session is not closed")
	}
}

// A call that is under way while its session is closed finds the folder closed, which is told as the end of the session.
func TestFolderIsClosed(t *testing.T) {
	b, err := New(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := b.Session(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := b.sessions.Newest().(*session)
	top, err := s.dir.opened()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	err = top.do(func(dir) error { return nil })
	if !errors.Is(err, os.ErrClosed) {
		t.Errorf("the folder is closed, and %q is told", err)
	}
	if err := s.explain(t.Context(), err); !errors.Is(err, backend.ErrSessionEnded) && !errors.Is(err, backend.ErrClosed) {
		t.Errorf("the session is closed, and its caller is told %q", err)
	}
}
