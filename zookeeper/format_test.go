package zookeeper_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/zookeeper"
)

const uuid = `[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`

// The names must be those that each library looks for; that they are is shown by
// TestMixedFleet with the libraries themselves.
func TestFormat(t *testing.T) {
	for _, test := range []struct {
		o    zookeeper.Options
		want string
	}{
		{zookeeper.Options{}, `^n_\d{10}$`},
		{zookeeper.Options{As: zookeeper.ElectionSupport}, `^n_\d{10}$`},
		{zookeeper.Options{As: zookeeper.CuratorLatch}, `^_c_` + uuid + `-latch-\d{10}$`},
		{zookeeper.Options{As: zookeeper.CuratorSelector}, `^_c_` + uuid + `-lock-\d{10}$`},
		{zookeeper.Options{As: zookeeper.CuratorReadWrite}, `^_c_` + uuid + `-__WRIT__\d{10}$`},
		{zookeeper.Options{As: zookeeper.Kazoo}, `^[0-9a-f]{32}__lock__\d{10}$`},
		{zookeeper.Options{As: zookeeper.KazooReadWrite}, `^[0-9a-f]{32}__lock__\d{10}$`},
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

// The names of shared members, which the libraries themselves see in TestMixedReaders.
func TestSharedFormat(t *testing.T) {
	for _, test := range []struct {
		o    zookeeper.Options
		want string // empty: unsupported
	}{
		{zookeeper.Options{}, `^read-\d{10}$`},
		{zookeeper.Options{NamePrefix: "write-"}, `^read-\d{10}$`},
		{zookeeper.Options{As: zookeeper.CuratorReadWrite}, `^_c_` + uuid + `-__READ__\d{10}$`},
		{zookeeper.Options{As: zookeeper.KazooReadWrite}, `^[0-9a-f]{32}__rlock__\d{10}$`},
		{zookeeper.Options{As: zookeeper.ElectionSupport}, ""},
		{zookeeper.Options{As: zookeeper.CuratorLatch}, ""},
		{zookeeper.Options{As: zookeeper.CuratorSelector}, ""},
		{zookeeper.Options{As: zookeeper.Kazoo}, ""},
	} {
		s := session(t, open(t, test.o, server(t)))
		m, err := s.JoinShared(t.Context(), "e", "value", "")
		if test.want == "" {
			if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "as=kazoo-rw") {
				t.Errorf("as=%q: %+v, %v; want ErrUnsupported, and what to use instead", test.o.As, m, err)
			}
			if _, err := s.Claim(t.Context(), "e", "", "", backend.Member{}); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("as=%q: a claim of nothing: %v; want ErrUnsupported", test.o.As, err)
			}
			continue
		}
		if err != nil || !m.Shared || !regexp.MustCompile(test.want).MatchString(m.Key) {
			t.Errorf("as=%q: %+v, %v; want a shared member that matches %s", test.o.As, m, err, test.want)
			continue
		}
		if l := line(t, s, "e").Members; len(l) != 1 || l[0] != m.Member {
			t.Errorf("as=%q: in line stand %+v; want %+v", test.o.As, l, m)
		}
		if err := s.Leave(t.Context(), m.Member); err != nil {
			t.Fatal(err)
		}
	}
}
