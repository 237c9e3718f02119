package migrate_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/header"
	_ "github.com/succession-dev/succession/local"
	"github.com/succession-dev/succession/migrate"
)

// aliased returns the operator of a migration between two names of one coordinator.
func (w *world) aliased(begin bool) *migrate.Backend {
	w.t.Helper()
	b := migrate.New(w.c[0].Client("alias"), w.c[0].Client("alias"), &migrate.Options{From: oldURL, To: newURL, Begin: begin})
	w.t.Cleanup(func() { b.Close() })
	return b
}

// Two names of one coordinator are told by what one sees that is written by the other: no migration
// begins, and nothing is left.
func TestAliasesAreRefused(t *testing.T) {
	inWorld(t, func(w *world) {
		op := w.aliased(false)
		w.refuses(op.Begin, migrate.ErrRefused, oldURL, newURL, "one coordinator")
		if err := op.Check(w.ctx, election); !errors.Is(err, migrate.ErrRefused) {
			t.Errorf("Check: %v, want %v", err, migrate.ErrRefused)
		}
		if _, err := elect.New(w.aliased(true), election, nil).Campaign(w.ctx); !errors.Is(err, migrate.ErrRefused) {
			t.Errorf("a process that begins the migration: %v, want %v", err, migrate.ErrRefused)
		}
		if lines, records := w.c[0].Members(election), w.c[0].Record(election+".migrate-probe"); len(lines) > 0 || records.Version != backend.Absent {
			t.Errorf("left are %+v and %q", lines, records.Value)
		}
		p := w.start(onOld, "p")
		w.leads(p)
		p.end()
	})
}

// Where the gate of such a migration stands, put there by an earlier version or by hand, every step
// names the one that takes it away, and those who wait behind it lead again.
func TestAliasedMigrationIsAborted(t *testing.T) {
	inWorld(t, func(w *world) {
		op := w.aliased(false)
		s, err := w.c[0].Client("hand").Session(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		m, err := s.Join(w.ctx, election, "gate of migration m", "")
		if err == nil {
			h := header.Header{Migration: header.Migration{ID: "m", From: oldURL, To: newURL, Step: "begun", Gate: m.Position}}
			err = s.Pin(w.ctx, m.Member, h.Stored(), backend.Absent)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []step{op.Begin, op.Cutover, op.Finish} {
			w.refuses(f, migrate.ErrOther, "two names of one coordinator", "abort")
		}
		if st, err := op.Status(w.ctx, election); err != nil || st.Phase != migrate.Aliased || !strings.Contains(st.Next, "abort") {
			t.Errorf("the status is %+v, %v", st, err)
		}
		if _, err := elect.New(w.aliased(true), election, nil).Campaign(w.ctx); !errors.Is(err, migrate.ErrOther) {
			t.Errorf("a process with both: %v, want %v", err, migrate.ErrOther)
		}
		p := w.start(onOld, "p")
		w.until("it waits behind the gate", ttl, func() bool { return len(w.c[0].Members(election)) == 2 })
		w.plans(op, migrate.Abort, true, "take away the gate")
		w.do(op.Abort, migrate.None)
		w.leads(p)
		p.end()
	})
}

// A folder and a symbolic link to it are one coordinator, and so is a path that is written otherwise.
func TestAliasesOfALocalFolder(t *testing.T) {
	dir := t.TempDir()
	folder, link := filepath.Join(dir, "folder"), filepath.Join(dir, "link")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	for _, alias := range []string{link, folder + "/../folder"} {
		b, err := succession.Connect(t.Context(), "migrate:?from=local:"+folder+"&to=local:"+alias)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if _, err := b.(*migrate.Backend).Begin(t.Context(), election); !errors.Is(err, migrate.ErrRefused) || !strings.Contains(err.Error(), "one coordinator") {
			t.Errorf("Begin from %s to %s: %v, want %v", folder, alias, err, migrate.ErrRefused)
		}
	}
}
