package migrate_test

import (
	"slices"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/unready"
	"github.com/succession-dev/succession/migrate"
)

// Which candidates are not ready is known where the election is, and does not go along: positions on the other
// coordinator are others' there.
func TestUnreadyStaysWithItsMember(t *testing.T) {
	inWorld(t, func(w *world) {
		op, leader := w.underway(onBoth, "leader")
		b, _ := w.backend(onBoth, "b")
		defer b.Close()
		s, err := b.Session(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		says := func() string { // that a new member is not ready
			t.Helper()
			m, err := s.Join(w.ctx, election, "b", "")
			if err != nil {
				t.Fatal(err)
			}
			name := unready.Record(election, m.Member.Position)
			if _, err := s.Put(w.ctx, name, []byte("it starts"), &backend.If{Member: m.Member}); err != nil {
				t.Fatal(err)
			}
			return name
		}
		lists := func(want ...string) {
			t.Helper()
			if got, err := s.List(w.ctx, unready.Folder(election)); err != nil || !slices.Equal(got, want) {
				t.Errorf("not ready are %q, %v; want %q", got, err, want)
			}
		}
		old := says()
		lists(old)
		for _, note := range []string{old + ".migrate-home", election + ".migrate-records"} {
			if r := w.c[0].Record(note); r.Version != backend.Absent {
				t.Errorf("beside it stands %s: %s", note, r.Value)
			}
		}
		w.do(op.Cutover, migrate.Moved)
		lists()
		young := says()
		lists(young)
		if r, err := s.Get(w.ctx, young); err != nil || string(r.Value) != "it starts" {
			t.Errorf("Get: %s, %v", r.Value, err)
		}
		if err := s.Delete(w.ctx, young, nil); err != nil {
			t.Error(err)
		}
		lists()
		leader.end()
	})
}
