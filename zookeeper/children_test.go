package zookeeper_test

import (
	"errors"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/zookeeper"
)

// If somebody has made a znode below a gate or an item, it cannot be deleted. The error says so at once, because only a person can help.
func TestChildrenOfWhatIsToGo(t *testing.T) {
	admin, ctx := raw(t, server(t)), within(t, time.Minute)
	s := session(t, open(t, zookeeper.Options{}, server(t)))
	gate, item, by := join(t, s, "e", ""), appendItem(t, s, "items", ""), join(t, s, "by", "")
	if err := s.Pin(ctx, gate, backend.Header{}, backend.Absent); err != nil {
		t.Fatal(err)
	}
	for _, m := range []backend.Member{gate, item} {
		if _, err := admin.Create(path.Join(chroot(t), m.Line, m.Key, "child"), []byte{}, 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	operator := rig.OperatorOf(t, "zookeeper://"+server(t)+chroot(t))
	for _, test := range []struct {
		what string
		m    backend.Member
		err  error
	}{
		{"Leave", gate, s.Leave(ctx, gate)},
		{"Remove", item, s.Remove(ctx, item, by)},
		{"Drop", gate, operator.Drop(ctx, gate.Line)},
	} {
		if !errors.Is(test.err, backend.ErrDenied) || !strings.Contains(test.err.Error(), path.Join(chroot(t), test.m.Line, test.m.Key)) {
			t.Errorf("%s: %v", test.what, test.err)
		}
	}
	for _, m := range []backend.Member{gate, item} {
		if err := admin.Delete(path.Join(chroot(t), m.Line, m.Key, "child"), -1); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.Remove(ctx, item, by), operator.Drop(ctx, "e")); err != nil {
		t.Error(err)
	}
}
