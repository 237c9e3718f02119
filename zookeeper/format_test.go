package zookeeper_test

import (
	"regexp"
	"testing"

	"github.com/succession-dev/succession/zookeeper"
)

// The names must be those that each library looks for; that they are is shown by
// TestMixedFleet with the libraries themselves.
func TestFormat(t *testing.T) {
	const uuid = `[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`
	for _, test := range []struct {
		o    zookeeper.Options
		want string
	}{
		{zookeeper.Options{}, `^n_\d{10}$`},
		{zookeeper.Options{As: zookeeper.ElectionSupport}, `^n_\d{10}$`},
		{zookeeper.Options{As: zookeeper.CuratorLatch}, `^_c_` + uuid + `-latch-\d{10}$`},
		{zookeeper.Options{As: zookeeper.CuratorSelector}, `^_c_` + uuid + `-lock-\d{10}$`},
		{zookeeper.Options{As: zookeeper.Kazoo}, `^[0-9a-f]{32}__lock__\d{10}$`},
		{zookeeper.Options{NamePrefix: "guid_"}, `^guid_\d{10}$`},
	} {
		s := session(t, open(t, test.o, server(t)))
		a, b := join(t, s, "e", ""), join(t, s, "e", "")
		for _, m := range []string{a.Key, b.Key} {
			if !regexp.MustCompile(test.want).MatchString(m) {
				t.Errorf("as=%q name-prefix=%q: member %s does not match %s", test.o.As, test.o.NamePrefix, m, test.want)
			}
		}
		if p := ahead(t, s, b); p.Ahead.Key != a.Key {
			t.Errorf("as=%q: in front of %s stands %s, want %s", test.o.As, b.Key, p.Ahead.Key, a.Key)
		}
		for _, m := range line(t, s, "e").Members {
			if err := s.Leave(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
	}
}
