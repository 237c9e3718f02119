package zookeeper_test

import (
	"errors"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/zookeeper"
)

// Line reads members and header one by one, while Pin writes both. Who sees a pinned member must see
// the header that was written with it: otherwise a gate looks like a stranger's.
func TestLineShowsAPinWithItsHeader(t *testing.T) {
	writer := session(t, open(t, zookeeper.Options{}, server(t)))
	const name, rounds = "app/e", 40
	for range 3 * 16 { // in front, so that the pinned one is read long after the header
		join(t, writer, name, "")
	}
	errs := make(chan error, 5)
	over := make(chan struct{})
	for range cap(errs) - 1 {
		reader := session(t, open(t, zookeeper.Options{}, server(t)))
		go func() {
			for {
				select {
				case <-over:
					errs <- nil
					return
				default:
				}
				l, err := reader.Line(t.Context(), name)
				if err != nil {
					errs <- err
					return
				}
				for _, m := range l.Members {
					if m.Pinned && l.Header.Gate < m.Position {
						errs <- errors.New(m.Key + " is pinned, and the header does not say so yet")
						return
					}
				}
			}
		}()
	}
	go func() {
		defer close(over)
		at := backend.Absent
		for range rounds {
			m, err := writer.Join(t.Context(), name, "x", "")
			if err == nil {
				l, lerr := writer.Line(t.Context(), name)
				at, err = l.Version, lerr
			}
			if err == nil {
				err = writer.Pin(t.Context(), m.Member, backend.Header{Gate: m.Position}, at)
			}
			if err == nil {
				err = writer.Leave(t.Context(), m.Member)
			}
			if err != nil {
				errs <- err
				return
			}
		}
		errs <- nil
	}()
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
