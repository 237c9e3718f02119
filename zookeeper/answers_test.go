package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/zookeeper/internal/wire"
)

// An answer that only a person can help with says what to do, whether the library knows its code or not.
func TestAnswersThatAskForAPerson(t *testing.T) {
	for code, says := range map[int]string{wire.CodeLocalSession: "localSessionsUpgradingEnabled", wire.CodeQuota: "setquota"} {
		b := open(t, Options{Dialer: fakeServer(func(xid, op int, _ string) []byte {
			if op == opCreate {
				return reply(xid, code, 7)
			}
			return multiOK(xid)
		})})
		s, err := b.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Join(t.Context(), "e", "", ""); err == nil || !strings.Contains(err.Error(), says) || errors.Is(err, backend.ErrUnavailable) {
			t.Errorf("code %d: %v", code, err)
		}
	}
}

// A list that is too long fails the call that has asked for it, and not the connection, which all share.
func TestAnswerThatIsTooLong(t *testing.T) {
	answers := fakeServer(func(xid, op int, path string) []byte {
		switch op {
		case opMulti:
			return multiOK(xid)
		case opChildren2:
			return reply(xid, 0, 7, make([]byte, 17<<20-16))
		}
		return reply(xid, codeNoNode, 7)
	})
	var dials atomic.Int64
	b := open(t, Options{Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials.Add(1)
		return answers(ctx, network, addr)
	}})
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*second)
	defer cancel()
	for range 2 {
		if _, err := s.Line(ctx, "e"); err == nil || !strings.Contains(err.Error(), "17825792 bytes") {
			t.Error(err)
		}
	}
	if _, err := s.Get(ctx, "r"); err != nil || dials.Load() != 1 {
		t.Errorf("%v, after %d connections", err, dials.Load())
	}
}

// The head of a line is found although those that stood first when it was listed have left, however many. The line is not listed again.
func TestHeadWhileTheFirstLeave(t *testing.T) {
	for _, left := range []int{0, 1, 5, 40} {
		var mu sync.Mutex
		lists, reads := 0, 0
		b := open(t, Options{Dialer: fakeServer(func(xid, op int, path string) []byte {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case op == opMulti:
				return multiOK(xid)
			case op == opChildren2:
				lists++
				list := []any{100}
				for i := range 100 {
					list = append(list, fmt.Sprintf("n_%010d", i+100*(lists-1))) // all others have left, if it is listed again
				}
				return reply(xid, 0, 7, append(list, stats(7, 0)...)...)
			case path == "/e":
				return reply(xid, 0, 7, append([]any{""}, stats(7, 0)...)...)
			}
			reads++
			if lists > 1 || path < fmt.Sprintf("/e/n_%010d", left) {
				return reply(xid, codeNoNode, 7)
			}
			return reply(xid, 0, 7, append([]any{"value"}, stats(8, 5)...)...)
		})})
		s, err := b.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), second)
		l, err := s.Head(ctx, "e")
		cancel()
		if want := fmt.Sprintf("n_%010d", left); err != nil || len(l.Members) != 1 || l.Members[0].Key != want {
			t.Errorf("%d have left: %+v, %v", left, l, err)
		}
		mu.Lock()
		if most := 1 + (left+maxReads)/(maxReads+1)*(maxReads+1); reads > most || lists != 1 {
			t.Errorf("%d have left: %d reads and %d lists, want %d and 1 at most", left, reads, lists, most)
		}
		mu.Unlock()
	}
}
