package memory_test

import (
	"slices"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/memory"
)

func TestRecords(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		_, s := client(t, c, "a")
		ctx := t.Context()
		r, err := s.Get(ctx, "r")
		if err != nil || r.Version != backend.Absent || r.Name != "r" || r.Value != nil {
			t.Fatalf("Get of nothing: %+v, %v", r, err)
		}
		value := []byte("one")
		v1, err := s.Put(ctx, "r", value, &backend.If{Version: backend.Absent})
		ok(t, "Put", err)
		value[0] = 'X'
		r, err = s.Get(ctx, "r")
		if err != nil || string(r.Value) != "one" || r.Version != v1 {
			t.Fatalf("Get: %+v, %v; want one at %d", r, err, v1)
		}
		_, err = s.Put(ctx, "r", nil, &backend.If{Version: backend.Absent})
		is(t, "Put where there is one", err, backend.ErrVersion)
		is(t, "Delete at another version", s.Delete(ctx, "r", &backend.If{Version: v1 + 1}), backend.ErrVersion)
		ok(t, "Delete", s.Delete(ctx, "r", &backend.If{Version: v1}))
		is(t, "Delete of nothing at a version", s.Delete(ctx, "r", &backend.If{Version: v1}), backend.ErrVersion)
		ok(t, "Delete of nothing", s.Delete(ctx, "r", nil))
		v2, err := s.Put(ctx, "r", []byte("one"), nil)
		if err != nil || v2 <= v1 {
			t.Fatalf("after deletion the record has version %d, %v; before it had %d", v2, err, v1)
		}
	})
}

// G3: a write on condition of a member happens while that member stands.
func TestGuardedWrite(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		_, s := client(t, c, "a")
		ctx := t.Context()
		m := join(t, s, "a")
		v, err := s.Put(ctx, "r", []byte("1"), &backend.If{Member: m})
		ok(t, "Put", err)
		_, err = s.Put(ctx, "r", []byte("2"), &backend.If{Member: m, Version: v + 1})
		is(t, "Put with a member and a wrong version", err, backend.ErrVersion)
		c.Drop(election)
		if n := join(t, s, "b"); n.Key != m.Key {
			t.Fatalf("the key is %s, want %s again", n.Key, m.Key)
		}
		_, err = s.Put(ctx, "r", []byte("2"), &backend.If{Member: m})
		is(t, "Put of a member that has gone", err, backend.ErrNotMember)
		is(t, "Delete of a member that has gone", s.Delete(ctx, "r", &backend.If{Member: m}), backend.ErrNotMember)
		is(t, "Delete of nothing, of a member that has gone", s.Delete(ctx, "nothing", &backend.If{Member: m}), backend.ErrNotMember)
		if r := c.Record("r"); string(r.Value) != "1" || r.Version != v {
			t.Fatalf("the record is %+v, want it untouched", r)
		}
	})
}

// L7: members are not records, and only what is directly under dir is listed.
func TestList(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		_, s := client(t, c, "a")
		ctx := t.Context()
		join(t, s, "a")
		for _, name := range []string{election, "app/b", "app/b/c", "app/a", "application/x", "app"} {
			_, err := s.Put(ctx, name, nil, nil)
			ok(t, "Put", err)
		}
		for dir, want := range map[string][]string{
			"app":    {"app/a", "app/b", election},
			"app/b":  {"app/b/c"},
			election: nil,
			"none":   nil,
		} {
			got, err := s.List(ctx, dir)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("List(%q) = %q, %v; want %q", dir, got, err, want)
			}
		}
	})
}

// Watch wakes for its record alone, shows the newest, and deletion too.
func TestWatch(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b, s := client(t, c, "a")
		ctx := t.Context()
		after := backend.Absent
		for _, step := range []func() error{
			func() error { return second(s.Put(ctx, "r", []byte("1"), nil)) },
			func() error { return second(s.Put(ctx, "r", []byte("2"), nil)) },
			func() error { return s.Delete(ctx, "r", nil) },
		} {
			var got [2]backend.Record
			var watches []*pending
			for i := range got {
				watches = append(watches, begin(func() (err error) { got[i], err = s.Watch(ctx, "r", after); return err }))
			}
			ok(t, "Put elsewhere", second(s.Put(ctx, "other", nil, nil)))
			watches[0].blocks(t, "Watch")
			ok(t, "change", step())
			for i, w := range watches {
				ok(t, "Watch", w.returned(t, "Watch"))
				if now := c.Record("r"); got[i].Version != now.Version || string(got[i].Value) != string(now.Value) {
					t.Fatalf("Watch: %+v, the record is %+v", got[i], now)
				}
			}
			if len(got[0].Value) > 0 {
				got[0].Value[0] = 'X'
				if got[1].Value[0] == 'X' {
					t.Fatal("two callers share one value")
				}
			}
			after = got[0].Version
		}

		// A slow watcher misses what lay between, never the newest.
		b.Cut()
		slow := begin(func() error {
			r, err := s.Watch(ctx, "r", after)
			if string(r.Value) != "9" {
				t.Errorf("a slow watcher sees %q, want the newest", r.Value)
			}
			return err
		})
		_, sb := client(t, c, "b")
		for _, v := range "789" {
			ok(t, "Put", second(sb.Put(ctx, "r", []byte(string(v)), nil)))
		}
		b.Heal()
		ok(t, "Watch", slow.returned(t, "Watch"))
		if n := c.Wakeups().Total(memory.OpWatch); n != 3 {
			t.Fatalf("%d wake-ups, want one for each shared watch that had to wait", n)
		}
	})
}
