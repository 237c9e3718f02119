package laws

import (
	"fmt"
	"strings"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
)

var valueRules = []engine.Rule{{
	ID: "L8.intact", Title: "values arrive as they were given",
	Text: "Values of members, among them the empty one, several lines, all of Unicode, JSON, NUL and 4096 bytes, are in what Join returns and in every client's Line, byte by byte.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		var want []backend.Member
		for _, v := range []string{
			"", "host-1", "one\ntwo\n", " \t ", "grüße, 世界, 🗳", `{"addr":"10.0.0.1:80"}`, "a\x00b", `"quoted\"`, "/a/b?c=d&e=%20",
			strings.Repeat("x", backend.MaxValue), strings.Repeat("ü", backend.MaxValue/2),
		} {
			m := a.Join(v)
			if m.Value != v {
				t.Never("Join with value %.40q returned value %.40q", v, m.Value)
			}
			want = append(want, m)
		}
		a.Shows(t.Soon(), want...)
		b.Shows(t.Soon(), want...)
	},
}, {
	ID: "L8.invalid", Title: "what cannot be kept everywhere is refused",
	Text: "Values that are too long or not UTF-8, and names that backend.CheckName refuses, fail with ErrInvalid in Join, Line, WatchLine, Get, Put, Delete, List and Watch, and nothing comes into being.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		before := b.Line().Version
		for _, v := range []string{strings.Repeat("x", backend.MaxValue+1), "\xff", "ok\xc3"} {
			op := engine.Join(t.Name, v)
			op.Name += fmt.Sprintf(" with the value %.20q", v)
			a.Fails(op, backend.ErrInvalid)
		}
		for _, name := range []string{
			"", "/" + t.Name, t.Name + "/", "a//b", ".", "a/../b", "a b", "ü", "a\nb", "a?b", "a%2fb", strings.Repeat("x", backend.MaxName+1),
		} {
			ops := []engine.Op{engine.Join(name, ""), engine.Line(name), engine.WatchLine(name, backend.Line{})}
			if t.Can(engine.Records) {
				ops = append(ops, engine.Get(name), engine.Put(name, "", nil), engine.Delete(name, nil), engine.List(name), engine.ReadAll(name), engine.Watch(name, 0))
			}
			for _, op := range ops {
				op.Name += fmt.Sprintf(" with the name %.40q", name)
				a.Fails(op, backend.ErrInvalid)
			}
		}
		b.Leave(b.In(t.Name + "-after").Join("x")) // makes b as fresh as the refusals
		if l := b.Line(); len(l.Members) != 0 || l.Version != before {
			t.Fatalf("after what was refused, the line is %s, its record at version %d; want nobody, and %d", engine.ShowLine(l.Members), l.Version, before)
		}
	},
}, {
	ID: "L8.kept", Title: "a member is never rewritten",
	Text: "Key, position and value of a member that stands are the same in every Line, after others came and went, and, where the backend can, the header was written and the member was pinned.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		front, m := a.Join("front"), a.Join("the value")
		b.Shows(t.Soon(), front, m)
		b.Leave(b.Join("y"))
		b.Shows(t.Soon(), front, m)
		if t.Can(engine.Records) {
			b.PutFence(5)
		}
		b.Shows(t.Soon(), front, m)
		a.Leave(front)
		a.First(m, engine.Now)
		b.Shows(t.Soon(), m)
		if !t.Can(engine.Pins) {
			return
		}
		a.Pin(m, nil)
		b.Shows(t.Soon(), m)
		b.Refresh()
		if l := b.Members(); !l[0].Pinned {
			t.Fatalf("the pinned member is not shown as pinned")
		}
	},
}}
