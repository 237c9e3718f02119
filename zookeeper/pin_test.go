package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
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

// A pinned member has its position in its data. If somebody has written over that, it still stands, and Leave does not say that it has left.
func TestLeaveOfAPinThatWasRewritten(t *testing.T) {
	s, op := session(t, open(t, zookeeper.Options{}, server(t))), raw(t, server(t))
	var ms []backend.Member
	for range 40 {
		ms = append(ms, join(t, s, "e", ""))
	}
	first, others := ms[0], ms[1:]
	if err := s.Pin(t.Context(), first, backend.Header{}, backend.Absent); err != nil {
		t.Fatal(err)
	}
	if _, err := op.Set(chroot(t)+"/e/"+first.Key, []byte("rewritten"), -1); err != nil {
		t.Fatal(err)
	}
	if err := s.Leave(t.Context(), first); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("Leave: %v, want ErrDenied", err)
	}
	var all sync.WaitGroup
	for _, m := range append(others, first) { // most leave together
		all.Go(func() {
			if err := s.Leave(t.Context(), m); errors.Is(err, backend.ErrDenied) != (m == first) {
				t.Errorf("Leave of %s together with others: %v", m.Key, err)
			}
		})
	}
	all.Wait()
	l := line(t, s, "e")
	if len(l.Members) != 1 || l.Members[0].Key != first.Key {
		t.Fatalf("there stand %+v", l.Members)
	}
	if err := s.Leave(t.Context(), l.Members[0]); err != nil {
		t.Errorf("Leave of the member that the line shows: %v", err)
	}
	if l := line(t, s, "e"); len(l.Members) != 0 {
		t.Errorf("there stand %+v", l.Members)
	}
}

// A session that waits for a member of its own does not take its pin for its departure, though ZooKeeper deletes the znode.
func TestGoneOfAMemberThatIsPinned(t *testing.T) {
	s := session(t, open(t, zookeeper.Options{}, server(t)))
	m := join(t, s, "e", "")
	gone := background(func() error { return s.Gone(t.Context(), m) })
	still(t, gone, 20*time.Millisecond) // it watches
	if err := s.Pin(t.Context(), m, backend.Header{}, line(t, s, "e").Version); err != nil {
		t.Fatal(err)
	}
	still(t, gone, 100*time.Millisecond)
	if err := s.Leave(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if err := result(t, gone, 10*time.Second); err != nil {
		t.Error(err)
	}
}

// If a session believes that a member has gone, and it stands, who watches its place asks where it stands.
func TestWatchPlaceOfAForgottenMember(t *testing.T) {
	s := session(t, open(t, zookeeper.Options{}, server(t)))
	m := join(t, s, "e", "")
	p := ahead(t, s, m)
	ctx := within(t, 10*time.Second)
	watch := background(func() error { return s.WatchPlace(ctx, m, &p) })
	still(t, watch, 20*time.Millisecond)
	zookeeper.Forget(s, m)
	if err := result(t, watch, 5*time.Second); err != nil || !p.First {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestDroppedMeanwhile says that a call fails with an error of the contract if an operator deletes, between two of its requests, what it
// is about.
func TestDroppedMeanwhile(t *testing.T) {
	t.Parallel()
	addr := server(t)
	s := session(t, open(t, zookeeper.Options{Prefix: chroot(t)}, addr))
	operator := rig.OperatorOf(t, "zookeeper://"+addr+chroot(t))
	ctx, stop := context.WithCancel(t.Context())
	dropping := background(func() error {
		for ctx.Err() == nil {
			for _, line := range []string{"e", "claims"} {
				if err := operator.Drop(t.Context(), line); err != nil {
					return err
				}
			}
		}
		return nil
	})
	item := appendItem(t, s, "items", "x")
	for name, call := range map[string]func() error{
		"Pin": func() error {
			j, err := s.Join(t.Context(), "e", "x", "")
			if err == nil {
				err = s.Pin(t.Context(), j.Member, backend.Header{}, 0)
			}
			return err
		},
		"Claim": func() error {
			j, err := s.Claim(t.Context(), "claims", fmt.Sprintf("x\n%s %d", item.Key, item.Position), "", item)
			if err == nil {
				err = s.Leave(t.Context(), j.Member)
			}
			return err
		},
	} {
		for range 300 {
			err := call()
			known := []error{backend.ErrNotMember, backend.ErrVersion, backend.ErrUnavailable, backend.ErrTaken}
			if err != nil && !slices.ContainsFunc(known, func(want error) bool { return errors.Is(err, want) }) {
				t.Errorf("%s: %v", name, err)
				break
			}
		}
	}
	stop()
	if err := result(t, dropping, 10*time.Second); err != nil {
		t.Error(err)
	}
}
