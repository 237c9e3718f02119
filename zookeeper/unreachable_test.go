package zookeeper

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
)

// A backend that is closed while no server can be reached has joined nothing, so there is nothing to tell.
func TestCloseWhileNoServerAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Options{Dialer: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") }})
		go b.Session(t.Context())
		time.Sleep(second)
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A call that has waited for a connection in vain says why there is none.
func TestErrorSaysWhyThereIsNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := fakeServer(func(xid, op int, _ string) []byte {
			if op == opMulti {
				return multiOK(xid)
			}
			return reply(xid, codeNoNode, 7)
		})
		var last net.Conn
		down := false
		b := open(t, Options{Dialer: func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
			if down {
				return nil, errors.New("nobody listens there")
			}
			last, err = answers(ctx, network, addr)
			return last, err
		}})
		s, err := b.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		down = true
		last.Close()
		synctest.Wait()
		for what, call := range map[string]func(context.Context) error{
			"Get":    func(ctx context.Context) error { _, err := s.Get(ctx, "r"); return err },
			"Put":    func(ctx context.Context) error { _, err := s.Put(ctx, "r", nil, nil); return err },
			"Delete": func(ctx context.Context) error { return s.Delete(ctx, "r", &backend.If{Version: 7}) },
			"Join":   func(ctx context.Context) error { _, err := s.Join(ctx, "e", "", ""); return err },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), second)
			defer cancel()
			if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, backend.ErrUnavailable) || !strings.Contains(err.Error(), "nobody listens there") {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}
