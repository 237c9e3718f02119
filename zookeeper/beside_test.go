package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/zookeeper"
)

// A neighbour may create znodes on the prefix, as whoever begins an election of his own must.
type neighbour struct {
	t  *testing.T
	op *zk.Conn
}

// neighbourOf returns bob, in whose reach alice's election "e" lies. He has no right on it.
func neighbourOf(t *testing.T) (*neighbour, backend.Session) {
	t.Helper()
	s := session(t, openAlice(t))
	op := raw(t, server(t))
	if err := op.AddAuth("digest", []byte(alice.User+":"+alice.Password)); err != nil {
		t.Fatal(err)
	}
	join(t, s, "e", "") // makes the prefix and the election
	acl := append(zk.DigestACL(zk.PermAll, alice.User, alice.Password), zk.DigestACL(zk.PermCreate|zk.PermRead, bob.User, bob.Password)...)
	if _, err := op.SetACL(chroot(t), acl, -1); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil { // with its member
		t.Fatal(err)
	}
	bobs := raw(t, server(t))
	if err := bobs.AddAuth("digest", []byte(bob.User+":"+bob.Password)); err != nil {
		t.Fatal(err)
	}
	return &neighbour{t, bobs}, session(t, openAlice(t))
}

// plant makes a znode that only bob may change, and that others may read if readable is true.
func (n *neighbour) plant(name, data string, readable bool) {
	n.t.Helper()
	acl := zk.DigestACL(zk.PermAll, bob.User, bob.Password)
	if readable {
		acl = append(acl, zk.WorldACL(zk.PermRead)...)
	}
	at := path.Join(chroot(n.t), name)
	if _, err := n.op.Create(at, nil, 0, acl); err != nil {
		n.t.Fatal(err)
	}
	if _, err := n.op.Set(at, []byte(data), -1); err != nil {
		n.t.Fatal(err)
	}
}

func openAlice(t *testing.T) *zookeeper.Backend {
	return open(t, zookeeper.Options{Auth: alice}, server(t))
}

// campaign has a candidate of alice's lead, and resign.
func campaign(t *testing.T, o *elect.Options) (token uint64) {
	t.Helper()
	term, err := elect.New(openAlice(t), "e", o).Campaign(within(t, 20*time.Second))
	if err != nil {
		t.Error(err)
		return 0
	}
	if err := term.Resign(t.Context()); err != nil {
		t.Error(err)
	}
	return term.Token()
}

// Whoever may create znodes on the prefix, and has no right on an election, can neither raise its fence nor stop it
// by a znode with the name of its fence.
func TestFenceOfOthers(t *testing.T) {
	for _, c := range []struct {
		name, data string
		readable   bool
	}{
		{"huge", string(backend.Header{Fence: 4000000000000000000}.Encode()), true},
		{"damaged", `{"succession":`, true},
		{"unreadable", string(backend.Header{Fence: 1000}.Encode()), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bob, _ := neighbourOf(t)
			bob.plant("e.fence", c.data, c.readable)
			if token := campaign(t, nil); token > 1<<40 {
				t.Errorf("the token is %d", token)
			}
		})
	}
}

// A fence that was raised is restored when the election's znode has been deleted, or has lost its data.
func TestFenceIsRestored(t *testing.T) {
	const fence = 1 << 50
	for name, lose := range map[string]func(*zk.Conn, string) error{
		"deleted": func(op *zk.Conn, at string) error { return op.Delete(at, -1) },
		"emptied": func(op *zk.Conn, at string) error { _, err := op.Set(at, nil, -1); return err },
	} {
		t.Run(name, func(t *testing.T) {
			campaign(t, nil) // so the election is there before its fence is kept
			if err := operate.New(openAlice(t), "e", "").RaiseFence(t.Context(), fence); err != nil {
				t.Fatal(err)
			}
			op := raw(t, server(t))
			if err := op.AddAuth("digest", []byte(alice.User+":"+alice.Password)); err != nil {
				t.Fatal(err)
			}
			if err := lose(op, chroot(t)+"/e"); err != nil {
				t.Fatal(err)
			}
			if token := campaign(t, nil); token < fence {
				t.Errorf("the token is %d; want more than the fence, %d", token, fence)
			}
		})
	}
}

// Whoever may create znodes on the prefix, and has no right on an election, can neither say of its candidates that
// they are not ready, nor stop them by a folder that they may not read.
func TestReadinessOfOthers(t *testing.T) {
	for _, readable := range []bool{true, false} {
		t.Run(fmt.Sprintf("readable=%t", readable), func(t *testing.T) {
			bob, s := neighbourOf(t)
			bob.plant("e.unready", "x", readable)
			first := join(t, s, "e", "first")
			led := background(func() error {
				campaign(t, &elect.Options{ID: "ready", Priority: 1, Ready: func(context.Context) error { return nil }})
				return nil
			})
			l, err := line(t, s, "e"), error(nil)
			for err == nil && len(l.Members) < 2 {
				l, err = s.WatchLine(within(t, 20*time.Second), "e", l)
			}
			if err != nil {
				t.Fatal(err)
			}
			bob.plant(fmt.Sprintf("e.unready/%d", l.Members[1].Position), "slander", readable)
			if err := s.Leave(t.Context(), first); err != nil {
				t.Fatal(err)
			}
			if err := result(t, led, 20*time.Second); err != nil {
				t.Error(err)
			}
			m := join(t, s, "e", "alone")
			bob.plant(fmt.Sprintf("e.unready/%d", m.Position), "slander", readable)
			_, candidates, err := elect.New(openAlice(t), "e", nil).Line(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(candidates) != 1 || candidates[0].NotReady != "" {
				t.Errorf("the line is %+v; want one candidate that is ready", candidates)
			}
		})
	}
}

// A candidate that is not ready says so, and leaves nothing of it behind.
func TestUnreadyIsSaid(t *testing.T) {
	e := elect.New(openAlice(t), "e", &elect.Options{
		Ready: func(context.Context) error { return errors.New("no disk") },
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := background(func() error { _, err := e.Campaign(ctx); return err })
	s := session(t, openAlice(t))
	for at := backend.Absent; ; {
		_, candidates, err := e.Line(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(candidates) == 1 && candidates[0].NotReady == "no disk" {
			break
		}
		short, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, _ = s.Watch(short, "e", at)
		stop()
		if t.Context().Err() != nil {
			t.Fatal("nobody says that it is not ready")
		}
	}
	cancel()
	_ = result(t, ended, 20*time.Second)
	if names, err := s.List(t.Context(), "e.unready"); err != nil || len(names) != 0 {
		t.Errorf("left over: %v, %v", names, err)
	}
}

// Whoever may create znodes on the prefix can make the count of deletions, and count what nobody has deleted, or have
// nobody else count. Candidates of another election lead nevertheless, and write on condition between two counts.
func TestDeletionsOfOthers(t *testing.T) {
	for _, readable := range []bool{true, false} {
		t.Run(fmt.Sprintf("readable=%t", readable), func(t *testing.T) {
			bob, s := neighbourOf(t)
			bob.plant("~deletions", "", readable)
			ctx, stop := context.WithCancel(t.Context())
			var counting sync.WaitGroup
			defer counting.Wait()
			defer stop()
			counting.Go(func() {
				tick := time.NewTicker(3 * time.Millisecond)
				defer tick.Stop()
				for ctx.Err() == nil {
					if _, err := bob.op.Set(path.Join(chroot(t), "~deletions"), nil, -1); err != nil {
						t.Error("count:", err)
						return
					}
					<-tick.C
				}
			})
			term, err := elect.New(openAlice(t), "e", nil).Campaign(within(t, 20*time.Second))
			if err != nil {
				t.Fatal(err)
			}
			for range 5 {
				if err := term.Acknowledge(within(t, 20*time.Second)); err != nil {
					t.Error("acknowledge:", err)
				}
				r, err := s.Get(t.Context(), "e")
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.Put(within(t, 20*time.Second), "e", header.Header{Acknowledged: 7}.Encode(), &backend.If{Version: r.Version}); err != nil {
					t.Error("put:", err)
				}
			}
			if err := s.Delete(within(t, 20*time.Second), "e.other", nil); err != nil {
				t.Error("delete:", err)
			}
			if err := term.Resign(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
