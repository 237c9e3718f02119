package conformance

import (
	"strings"

	"github.com/succession-dev/succession/backend"
)

var valueRules = []Rule{{
	ID:    "L8.intact",
	Title: "values arrive as they were given",
	Text:  "Values of members, among them the empty one, several lines, all of Unicode, JSON, NUL and 4096 bytes, are in what Join returns and in every client's Line, byte by byte.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		var want []backend.Member
		for _, v := range []string{
			"", "host-1", "one\ntwo\n", " \t ", "grüße, 世界, 🗳", `{"addr":"10.0.0.1:80"}`, "a\x00b", `"quoted\"`, "/a/b?c=d&e=%20",
			strings.Repeat("x", backend.MaxValue), strings.Repeat("ü", backend.MaxValue/2),
		} {
			m := a.join(v)
			if m.Value != v {
				t.fatalf("Join with value %.40q returned value %.40q", v, m.Value)
			}
			want = append(want, m)
		}
		a.shows(want...)
		b.shows(want...)
	},
}, {
	ID:    "L8.invalid",
	Title: "what cannot be kept everywhere is refused",
	Text:  "Values that are too long or not UTF-8, and names that backend.CheckName refuses, fail with ErrInvalid in Join, Line, Joined, Get, Put, Delete, List and Watch, and nothing comes into being.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		before := b.lineNow().Version
		s := a.live()
		ctx, cancel := t.within(t.h.soon())
		defer cancel()
		for _, v := range []string{strings.Repeat("x", backend.MaxValue+1), "\xff", "ok\xc3"} {
			if m, err := s.Join(ctx, t.line, v); !is(err, backend.ErrInvalid) {
				t.fatalf("Join with value %.20q returned %s, %v; want ErrInvalid", v, show(m), err)
			}
		}
		for _, name := range []string{
			"", "/" + t.line, t.line + "/", "a//b", ".", "a/../b", "a b", "ü", "a\nb", "a?b", "a%2fb", strings.Repeat("x", backend.MaxName+1),
		} {
			calls := map[string]func() error{
				"Join":   func() error { _, err := s.Join(ctx, name, ""); return err },
				"Line":   func() error { _, err := s.Line(ctx, name); return err },
				"Joined": func() error { return s.Joined(ctx, name) },
			}
			if t.h.can(Records) {
				calls["Get"] = func() error { _, err := s.Get(ctx, name); return err }
				calls["Put"] = func() error { _, err := s.Put(ctx, name, nil, nil); return err }
				calls["Delete"] = func() error { return s.Delete(ctx, name, nil) }
				calls["Watch"] = func() error { _, err := s.Watch(ctx, name, 0); return err }
				calls["List"] = func() error { _, err := s.List(ctx, name); return err }
			}
			for call, f := range calls {
				if err := f(); !is(err, backend.ErrInvalid) {
					t.fatalf("%s with the name %.40q returned %v; want ErrInvalid", call, name, err)
				}
			}
		}
		b.leave(b.joinLine(t.line+"-after", "x")) // makes b as fresh as the refusals
		if l := b.lineNow(); len(l.Members) != 0 || l.Version != before {
			t.fatalf("after what was refused, the line is %s, its record at version %d; want nobody, and %d", showLine(l.Members), l.Version, before)
		}
	},
}, {
	ID:    "L8.kept",
	Title: "a member is never rewritten",
	Text:  "Key, position and value of a member that stands are the same in every Line, after others came and went, and, where the backend can, the header was written and the member was pinned.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		front, m := a.join("front"), a.join("the value")
		b.shows(front, m)
		b.leave(b.join("y"))
		b.shows(front, m)
		if t.h.can(Records) {
			b.raise(5)
		}
		b.shows(front, m)
		a.leave(front)
		a.leads(m)
		b.shows(m)
		if !t.h.can(Pins) {
			return
		}
		a.pinAsItIs(m)
		b.shows(m)
		if l := b.members(); !l[0].Pinned {
			t.fatalf("the pinned member is not shown as pinned")
		}
	},
}}
