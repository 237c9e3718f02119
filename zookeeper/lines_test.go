package zookeeper_test

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/zookeeper"
)

// A znode that a stranger has made below the prefix, and that nobody else may read, hides no line.
func TestLinesBesideWhatCannotBeRead(t *testing.T) {
	s, ctx := session(t, open(t, zookeeper.Options{}, server(t))), within(t, time.Minute)
	join(t, s, "e", "")
	join(t, s, "folder/e", "")
	admin := raw(t, server(t))
	hide := func(path string, err error) {
		if err == nil {
			_, err = admin.SetACL(path, zk.WorldACL(zk.PermAll&^zk.PermRead), -1)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	hide(admin.Create(chroot(t)+"/stranger", []byte{}, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)))
	if got, err := s.Lines(ctx); err != nil || !maps.Equal(got, map[string]int{"e": 1, "folder/e": 1}) {
		t.Errorf("%v, %v", got, err)
	}
	hide(chroot(t), nil)
	if got, err := s.Lines(ctx); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("of a prefix that cannot be read: %v, %v", got, err)
	}
	if _, err := admin.SetACL(chroot(t), zk.WorldACL(zk.PermAll), -1); err != nil {
		t.Fatal(err)
	}
}
