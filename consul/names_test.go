package consul_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// A key is part of a URL on its way to Consul, and Consul's server redirects a path that
// it takes for unclean. So a name that is not clean would be another key there than in a
// transaction.
func TestNamesThatWouldBeCleaned(t *testing.T) {
	s := session(t, server(t), nil)
	ctx := t.Context()
	calls := map[string]func(name string) error{
		"Join": func(name string) error { _, err := s.Join(ctx, name, "", ""); return err },
		"Ahead": func(name string) error {
			_, err := s.Ahead(ctx, backend.Member{Line: name, Key: uuid, Position: 1})
			return err
		},
		"Gone":      func(name string) error { return s.Gone(ctx, backend.Member{Line: name, Key: uuid, Position: 1}) },
		"Leave":     func(name string) error { return s.Leave(ctx, backend.Member{Line: name, Key: uuid, Position: 1}) },
		"Line":      func(name string) error { _, err := s.Line(ctx, name); return err },
		"WatchLine": func(name string) error { _, err := s.WatchLine(ctx, name, backend.Line{}); return err },
		"Append":    func(name string) error { _, err := s.Append(ctx, name, ""); return err },
		"Remove": func(name string) error {
			return s.Remove(ctx, backend.Member{Line: name, Key: uuid, Position: 1}, backend.Member{Line: "e", Key: uuid, Position: 1})
		},
		"Remove by": func(name string) error {
			return s.Remove(ctx, backend.Member{Line: "e", Key: uuid, Position: 1}, backend.Member{Line: name, Key: uuid, Position: 1})
		},
		"Get":    func(name string) error { _, err := s.Get(ctx, name); return err },
		"Put":    func(name string) error { _, err := s.Put(ctx, name, nil, nil); return err },
		"Delete": func(name string) error { return s.Delete(ctx, name, nil) },
		"List":   func(name string) error { _, err := s.List(ctx, name); return err },
		"Watch":  func(name string) error { _, err := s.Watch(ctx, name, 0); return err },
	}
	for _, name := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "./a", "../a", "a/.", "a/..", "a/./b", "a/../b",
		"a%2Fb", "a%2e", "a b", "a?b", "a#b", "a\\b", "a;b", "a+b", "\u00e9", "a\nb", "a\x00b",
	} {
		for what, call := range calls {
			if err := call(name); !errors.Is(err, backend.ErrInvalid) {
				t.Errorf("%s of %q returned %v, want ErrInvalid", what, name, err)
			}
		}
	}
	for _, key := range []string{"", ".", "..", "a/b", "../" + uuid, uuid + "/"} {
		if err := s.Leave(ctx, backend.Member{Line: "e", Key: key, Position: 1}); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("Leave of a member %q returned %v, want ErrInvalid", key, err)
		}
	}
}

// A name that is allowed is kept exactly, by every kind of request.
func TestNamesAreKeptToTheLetter(t *testing.T) {
	addr, dir := server(t), coordtest.Name(t)
	s := session(t, addr, nil)
	for _, name := range []string{"...", "a..b", "..a", "A", "-", "_._", "v1.2/x", "kv", "v1/kv/x"} {
		name := dir + "/" + name
		v, err := s.Put(t.Context(), name, []byte(name), nil) // a transaction, with the key in its body
		if err != nil {
			t.Errorf("Put of %q returned %v", name, err)
			continue
		}
		if r, err := s.Get(t.Context(), name); err != nil || r.Version != v || string(r.Value) != name { // the key is in the path
			t.Errorf("Get of %q returned %+v, %v", name, r, err)
		}
		if position(t, addr, name) == 0 {
			t.Errorf("there is no key %q", name)
		}
	}
}

// A session remembers nothing of a name that it does not use any more.
func TestNamesForgotten(t *testing.T) {
	t.Parallel()
	s, name := session(t, server(t), nil), coordtest.Name(t)
	before := consul.Remembered(s)
	for i := range 50 {
		m := join(t, s, fmt.Sprint(name, i), "")
		if _, err := s.Ahead(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		if err := s.Leave(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if n := consul.Remembered(s); n > before {
		t.Errorf("the session remembers %d things, and did %d before it used 50 names", n, before)
	}
}
