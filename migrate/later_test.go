package migrate_test

import (
	"strings"
	"testing"

	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/migrate"
)

// What a later version has added to the record of the election moves with it, but for what it has added to the migration. It is there
// when the old coordinator is sealed: from then on anybody may take the gate away, and who leads then must know of it.
func TestLaterMoves(t *testing.T) {
	inWorld(t, func(w *world) {
		wants := func(when string) {
			record := string(w.c[1].Record(election).Value)
			for _, text := range []string{`"weights":[1,2]`, `"other":3`, `"more":2`} {
				if !strings.Contains(record, text) {
					t.Errorf("%s the new coordinator has %s, without %s", when, record, text)
				}
			}
		}
		term := w.sealsThen(func(*memory.Backend) { wants("when the old one is sealed,") }, func() {
			w.adds(0, `{"migrate":{"more":1},"elect":{"weights":[1,2]}}`)
			w.adds(1, `{"migrate":{"more":2},"elect":{"other":3,"weights":[0]}}`)
		})
		op, _ := w.backend(onBoth, "operator")
		defer op.Close()
		w.do(op.(*migrate.Backend).Finish, migrate.Moved)
		wants("in the end")
		if err := term.Resign(w.ctx); err != nil {
			t.Error(err)
		}
	})
}

// adds adds to the header of one side what a later version would.
func (w *world) adds(side int, later string) {
	w.t.Helper()
	b := w.c[side].Client("later")
	defer b.Close()
	s, err := b.Session(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	r, err := s.Get(w.ctx, election)
	if err != nil {
		w.t.Fatal(err)
	}
	h, err := header.Parse(r.Value)
	if err != nil {
		w.t.Fatal(err)
	}
	h.Later = later
	if _, err := s.Put(w.ctx, election, h.Encode(), nil); err != nil {
		w.t.Fatal(err)
	}
}
