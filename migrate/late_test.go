package migrate_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/migrate"
)

// An unwritable backend has no right to the record with the name.
type unwritable struct {
	backend.Backend
	name string
}

type unwritableSession struct {
	backend.Session
	name string
}

func (b unwritable) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	return unwritableSession{s, b.name}, err
}

func (s unwritableSession) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	if name == s.name {
		return 0, backend.ErrDenied
	}
	return s.Session.Put(ctx, name, value, cond)
}

func (s unwritableSession) Delete(ctx context.Context, name string, cond *backend.If) error {
	if name == s.name {
		return backend.ErrDenied
	}
	return s.Session.Delete(ctx, name, cond)
}

// leavesBehind ends a cutover whose leader p has crashed after the seal, without the right to a record
// on the new coordinator. Finish names the record.
func (w *world) leavesBehind(op *migrate.Backend, p *process, denied string) {
	w.t.Helper()
	id := w.do(op.Status, migrate.Begun).ID
	p.end()
	m, raw := w.raw(0, "leader")
	w.seals(raw, m, id)
	poor := migrate.New(w.c[0].Client("poor"), unwritable{w.c[1].Client("poor"), denied}, &migrate.Options{From: oldURL, To: newURL})
	defer poor.Close()
	w.refuses(poor.Finish, migrate.ErrRefused, strings.TrimSuffix(denied, ".migrate-home"))
}

// What a cutover could not carry over, without the right to, is named by finish, and carried over when
// that has it. If it may have been deleted meanwhile, an operator must say so.
func TestFinishCarriesWhatWasLeft(t *testing.T) {
	for _, denied := range []string{record, record + ".migrate-home"} {
		inWorld(t, func(w *world) {
			op, p := w.underway(onBoth, "p")
			w.guardsAs(p, record, "1")
			w.leavesBehind(op, p, denied)
			w.reads(onNew, "")
			if denied == record {
				w.refuses(op.Finish, migrate.ErrRefused, record, "deleted")
				w.do(w.chooses([]string{record}, false).Finish, migrate.Moved)
			}
			w.do(op.Finish, migrate.Moved)
			w.reads(onNew, "1")
		})
	}
}

// Finish carries a record over, and crashes before it has written that down. Then a leader of the new
// coordinator alone deletes the record. It comes back only if an operator says so.
func TestFinishBringsNothingBack(t *testing.T) {
	for _, leaves := range []bool{true, false} {
		inWorld(t, func(w *world) {
			op, p := w.underway(onBoth, "p")
			w.guardsAs(p, record, "1")
			w.leavesBehind(op, p, record)
			b := migrate.New(w.c[0].Client("deaf"), deaf{w.c[1].Client("deaf"), record, errCrashed, new(atomic.Bool)}, &migrate.Options{From: oldURL, To: newURL, Carry: []string{record}})
			defer b.Close()
			w.refuses(b.Finish, errCrashed)
			w.reads(onNew, "1")
			n := w.start(onNew, "n")
			w.leads(n)
			w.deletes(n.b, n.term.Member())
			n.end()
			w.refuses(op.Finish, migrate.ErrRefused, record, "deleted")
			w.reads(onNew, "")
			if leaves {
				w.do(w.chooses(nil, true).Finish, migrate.Moved)
				w.reads(onNew, "")
			} else {
				w.do(w.chooses([]string{record}, false).Finish, migrate.Moved)
				w.reads(onNew, "1")
			}
		})
	}
}

// On the way there for the second time the new coordinator has an older value, which the cutover could
// not replace, or remove. Finish does, if it is sure that nobody has written it since; otherwise it names
// the record until that has been copied.
func TestFinishReplacesOlderValue(t *testing.T) {
	for _, denied := range []string{record, record + ".migrate-home"} {
		for _, want := range []string{"3", ""} {
			inWorld(t, func(w *world) {
				for i, mode := range []string{onBoth, onBack} {
					op, p := w.underway(mode, "p")
					w.guardsAs(p, record, []string{"1", "2"}[i])
					w.do(op.Cutover, migrate.Moved)
					p.end()
					w.do(op.Finish, migrate.Moved)
				}
				op, p := w.underway(onBoth, "p")
				if w.guardsAs(p, record, want); want == "" {
					w.deletes(p.b, p.term.Member())
				}
				w.leavesBehind(op, p, denied)
				w.reads(onNew, "2")
				if denied != record {
					w.refuses(op.Finish, migrate.ErrRefused, record)
					w.reads(onNew, "2")
					if want == "" {
						n := w.start(onNew, "n")
						w.leads(n)
						w.deletes(n.b, n.term.Member())
						n.end()
					} else {
						w.writes(1, record, want)
					}
				}
				w.do(op.Finish, migrate.Moved)
				w.reads(onNew, want)
				if r := w.c[1].Record(record + ".migrate-home"); strings.Contains(string(r.Value), "over") {
					t.Errorf("the note is still %s", r.Value)
				}
				w.writesAlone(record, "4")
				w.reads(onBoth, "4")
			})
		}
	}
}

// A leader of the new coordinator alone writes a record that the cutover could not carry over. Nobody can know that it is
// not an older one, so Finish names it. Once both are the same, and Finish is done, processes with both read the new one.
func TestFinishSaysWhichCounts(t *testing.T) {
	for _, denied := range []string{record, record + ".migrate-home"} {
		inWorld(t, func(w *world) {
			op, p := w.underway(onBoth, "p")
			w.guardsAs(p, record, "1")
			w.leavesBehind(op, p, denied)
			w.writesAlone(record, "2")
			w.refuses(op.Finish, migrate.ErrRefused, record, "copy the newer one")
			w.writes(0, record, "2")
			w.do(op.Finish, migrate.Moved)
			w.writesAlone(record, "3")
			w.keepsNewer(record, "3")
		})
	}
}

// The new coordinator refuses to replace an older value, and a leader of it alone deletes that. Finish does not take that for what
// became of the value on the old one.
func TestFinishNamesADeletedOlderValue(t *testing.T) {
	inWorld(t, func(w *world) {
		w.writes(1, record, "0")
		op, p := w.underway(onBoth, "p")
		w.guardsAs(p, record, "1")
		w.leavesBehind(op, p, record)
		n := w.start(onNew, "n")
		w.leads(n)
		w.deletes(n.b, n.term.Member())
		n.end()
		w.refuses(op.Finish, migrate.ErrRefused, record, "deleted")
		w.do(w.chooses([]string{record}, false).Finish, migrate.Moved)
		w.reads(onNew, "1")
	})
}

// A record that goes with another election on the new coordinator stays as it is, and is named.
func TestFinishLeavesRecordsOfOthers(t *testing.T) {
	inWorld(t, func(w *world) {
		op, p := w.underway(onBoth, "p")
		w.guardsAs(p, record, "1")
		w.leavesBehind(op, p, record)
		w.writes(1, record, "2")
		w.writes(1, record+".migrate-home", `{"record":"`+record+`","election":"another","migration":""}`)
		w.refuses(op.Finish, migrate.ErrRefused, record, `"another"`)
		w.do(w.chooses(nil, true).Finish, migrate.Moved)
		w.reads(onNew, "2")
	})
}

// A record that goes with the election, as the new coordinator says, is named although nothing on the old one says so.
func TestFinishNamesAnOlderValue(t *testing.T) {
	inWorld(t, func(w *world) {
		w.writes(0, election+".migrate-records", `{"election":"`+election+`","records":["`+record+`"]}`)
		w.writes(0, record, "2")
		w.writes(1, record, "1")
		w.writes(1, record+".migrate-home", `{"record":"`+record+`","election":"`+election+`","migration":"earlier"}`)
		op, p := w.underway(onBoth, "p")
		w.do(op.Cutover, migrate.Moved)
		p.end()
		w.refuses(op.Finish, migrate.ErrRefused, record)
		w.refuses(w.chooses([]string{record}, false).Finish, migrate.ErrRefused, "copy the newer one")
		w.writes(1, record, "2")
		w.do(w.chooses([]string{record}, false).Finish, migrate.Moved)
		w.reads(onBoth, "2")
	})
}

// A leader of the new coordinator alone deletes an older value, which the cutover could not replace. What the old one has comes
// back only if an operator says so.
func TestFinishKeepsOlderValueDeleted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.writes(1, record, "0")
		w.writes(1, record+".migrate-home", `{"record":"`+record+`","election":"`+election+`","migration":"earlier"}`)
		op, p := w.underway(onBoth, "p")
		w.guardsAs(p, record, "1")
		w.leavesBehind(op, p, record+".migrate-home")
		n := w.start(onNew, "n")
		w.leads(n)
		w.deletes(n.b, n.term.Member())
		n.end()
		w.refuses(op.Finish, migrate.ErrRefused, record, "deleted")
		w.reads(onNew, "")
		w.do(w.chooses([]string{record}, false).Finish, migrate.Moved)
		w.reads(onNew, "1")
	})
}
