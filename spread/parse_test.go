package spread

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/memory"
)

// A list of clusters that is taken has a URL for each name, and each name once.
func FuzzList(f *testing.F) {
	for _, s := range []string{
		`[{"name":"east","url":"etcd://e1:2379/app"},{"name":"west","url":"zookeeper://w1/app"}]`, `[]`, `null`, `[null]`, `{}`,
		`[{"name":"a/b","url":"local:"}]`, `[{"name":"a","url":"migrate:?from=x"}]`, `[{"name":"a","url":"local:"},{"name":"a","url":"local:/x"}]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		clusters, err := parseList(text)
		if err != nil {
			return
		}
		if err := checkList(clusters); err != nil {
			if !errors.Is(err, backend.ErrInvalid) {
				t.Errorf("%s: %v; want ErrInvalid", text, err)
			}
			return
		}
		var names []string
		for _, c := range clusters {
			names = append(names, c.Name)
			if _, err := coordinator.ParseURL(c.URL); err != nil || strings.Contains(c.Name, "/") || backend.CheckName(c.Name) != nil {
				t.Errorf("%s: the cluster %+v is taken, %v", text, c, err)
			}
		}
		if slices.Sort(names); len(names) == 0 || len(slices.Compact(names)) != len(clusters) {
			t.Errorf("%s is taken", text)
		}
	})
}

// What the clusters say of themselves, of an election and of moves may be written by others. Then an election lives on one of the
// listed clusters, or there is an error that says why not.
func FuzzRecords(f *testing.F) {
	const stamped = `{"id":"1","name":"a","founders":["a"],"complete":true}`
	for _, s := range []struct{ stamp, home, bell string }{
		{stamped, `{"at":"a"}`, `{}`}, {stamped, `{"at":"nowhere"}`, ``}, {stamped, `{"at":"a","to":"a","at_url":"x"}`, `{"x":{"at":"b"}}`},
		{`{"id":"1","name":"b","founders":["b"],"complete":true}`, ``, ``}, {`{"complete":true}`, `null`, `null`},
		{`{"id":"1","name":"a","founders":[],"complete":true}`, ``, ``}, {`{"id":"1","name":"a","founders":["a","b"]}`, ``, ``}, {``, ``, ``},
		{`{"name":"a","complete":true}`, `{"at":"a"}`, `{`}, {" ", "null", "\x00"},
	} {
		f.Add(s.stamp, s.home, s.bell)
	}
	f.Fuzz(func(t *testing.T, stamp, home, bell string) {
		if max(len(stamp), len(home), len(bell)) > backend.MaxRecord {
			return
		}
		c := memory.New(nil)
		own := c.Client("own")
		defer own.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s, err := own.Session(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{stampRecord: stamp, "x" + homeSuffix: home, bellRecord: bell} {
			if text == "" {
				continue
			}
			if _, err := s.Put(ctx, name, []byte(text), nil); err != nil {
				t.Fatal(err)
			}
		}
		b := New(List(Cluster{"a", "memory:a"}), &Options{Open: func(string) (backend.Backend, error) { return c.Client("spread"), nil }})
		defer b.Close()
		of := b.For("x")
		joined, err := of.Session(ctx)
		if err == nil {
			_, err = joined.Join(ctx, "x", "value", "")
		}
		if ctx.Err() != nil || errors.Is(err, backend.ErrUnavailable) { // for which callers would try again and again
			t.Fatalf("stamp %q, home %q, bell %q: %v", stamp, home, bell, err)
		}
		if err == nil && len(c.Members("x")) != 1 {
			t.Errorf("stamp %q, home %q, bell %q: who has joined stands nowhere", stamp, home, bell)
		}
	})
}

// Whoever may write where one election lives can name any number of addresses of two clusters. This process opens sessions for a few of
// them, and other elections move on.
func TestFewRoutes(t *testing.T) {
	c := memory.New(nil)
	opened := 0
	b := New(List(Cluster{"a", "memory:a"}, Cluster{"b", "memory:b"}), &Options{Open: func(string) (backend.Backend, error) { return c.Client("spread"), nil }})
	defer b.Close()
	home := func(i int) Home {
		return Home{At: "a", To: "b", AtURL: "memory:a", ToURL: fmt.Sprint("memory:b", i)}
	}
	for i := range 1000 {
		_, err := b.move(t.Context(), "x", home(i))
		if err == nil {
			opened++
		} else if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), "x.spread") {
			t.Fatal(err)
		}
	}
	if opened != 8 || len(b.moves) != opened {
		t.Errorf("of 1000 pairs of addresses %d were taken, and %d are kept", opened, len(b.moves))
	}
	for _, at := range []struct {
		election string
		home     Home
	}{{"x", home(0)}, {"x", Home{At: "b", To: "a", AtURL: "memory:b", ToURL: "memory:a"}}, {"y", home(0)}, {"y", home(-1)}} {
		if _, err := b.move(t.Context(), at.election, at.home); err != nil {
			t.Errorf("%s by %+v: %v", at.election, at.home, err)
		}
	}
}
