package zookeeper_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/zookeeper"
)

// Deep in a line only those watch the header who stand behind a member that stays in line when the
// election moves. The header says so, and nobody leaves: they are told, and the others are not.
func TestSealedDeepInTheLine(t *testing.T) {
	op := raw(t, server(t))
	for name, test := range map[string]struct {
		o    zookeeper.Options
		name string // of the foreign member in front; empty for one of ours
		pin  bool
		told bool
	}{
		"behind ours":                          {zookeeper.Options{}, "", false, false},
		"behind a gate":                        {zookeeper.Options{}, "", true, true},
		"behind Curator, unknown to us":        {zookeeper.Options{}, "_c_6c1bd6c0-5b1a-4d5e-9f0a-2a5e3f1d8c77-latch-", false, true},
		"behind ours, as Curator":              {zookeeper.Options{As: zookeeper.CuratorLatch}, "", false, false},
		"behind Curator":                       {zookeeper.Options{As: zookeeper.CuratorLatch}, "_c_6c1bd6c0-5b1a-4d5e-9f0a-2a5e3f1d8c77-latch-", false, true},
		"behind ours, as kazoo":                {zookeeper.Options{As: zookeeper.Kazoo}, "", false, false},
		"behind kazoo":                         {zookeeper.Options{As: zookeeper.Kazoo}, "9f86d081884c7d659a2feaa0c55ad015__lock__", false, true},
		"behind whom nobody can tell":          {zookeeper.Options{As: zookeeper.ElectionSupport}, "n_", false, true},
		"behind whom nobody can tell, by name": {zookeeper.Options{NamePrefix: "guid_"}, "guid_", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := session(t, open(t, test.o, server(t)))
			for range 9 {
				join(t, s, "e", "")
			}
			if test.name != "" {
				if _, err := op.Create(chroot(t)+"/e/"+test.name, nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll)); err != nil {
					t.Fatal(err)
				}
			}
			if test.pin {
				if err := s.Pin(t.Context(), join(t, s, "e", ""), backend.Header{}, line(t, s, "e").Version); err != nil {
					t.Fatal(err)
				}
			}
			m := join(t, s, "e", "")
			p := ahead(t, s, m)
			moved := background(func() error { return s.WatchPlace(t.Context(), m, &p) })
			still(t, moved, 100*time.Millisecond)
			for _, h := range []header.Header{{Acknowledged: 1}, {Sealed: "etcd://h1:2379"}} {
				still(t, moved, 100*time.Millisecond)
				if _, err := s.Put(t.Context(), "e", h.Encode(), nil); err != nil {
					t.Fatal(err)
				}
			}
			if !test.told {
				still(t, moved, 300*time.Millisecond)
				return
			}
			if err := result(t, moved, 5*time.Second); !errors.Is(err, backend.ErrSealed) {
				t.Errorf("%+v, %v; want ErrSealed", p, err)
			}
		})
	}
}
