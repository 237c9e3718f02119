package zookeeper_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/migrate"
	"github.com/succession-dev/succession/zookeeper"
)

// With the prescribed znodes an election is moved without any right on the prefix; and who has the right to create what he
// likes there can make nothing that the move believes.
func TestMoveOfOthers(t *testing.T) {
	op := raw(t, server(t))
	at := [2]string{chroot(t) + "/from", chroot(t) + "/to"}
	commands := prescribed(t, at[0], "e", alice) + prescribed(t, at[1], "e", alice)
	administer(t, op, strings.ReplaceAll(commands, "e.fence \"\" ", "e.fence \"\" "+moves(t)+","))
	for _, dir := range at {
		acl, _, err := op.GetACL(dir)
		if err == nil {
			_, err = op.SetACL(dir, append(acl, zk.DigestACL(zk.PermCreate, "carol", "anything")...), -1)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	carol := raw(t, server(t))
	if err := carol.AddAuth("digest", []byte("carol:anything")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range at {
		for name, text := range map[string]string{
			"e.fence":                `{"succession":2,"fence":"4000000000000000000"}`,
			"e.migrate-both":         "1",
			"e.migrate-records":      `{"election":"e","records":["victim"]}`,
			"e.history.migrate-home": `{"record":"e.history","election":"e","migration":"x"}`,
			"e.migrate-probe":        "x",
			"e.spread":               `{"at":"nowhere"}`,
		} {
			if _, err := carol.Create(dir+"/"+name, []byte(text), 0, zk.WorldACL(zk.PermAll)); err != zk.ErrNodeExists {
				t.Errorf("who may create on the prefix makes %s: %v", name, err)
			}
			if _, err := carol.Set(dir+"/"+name, []byte(text), -1); err != zk.ErrNoAuth {
				t.Errorf("who may create on the prefix writes %s: %v", name, err)
			}
		}
	}
	both := func(who *zookeeper.Digest) *migrate.Backend {
		one := func(dir string) backend.Backend {
			return open(t, zookeeper.Options{Auth: who, Prefix: dir}, server(t))
		}
		b := migrate.New(one(at[0]), one(at[1]), &migrate.Options{From: "zookeeper://h" + at[0], To: "zookeeper://h" + at[1]})
		t.Cleanup(func() { b.Close() })
		return b
	}
	ctx := within(t, 60*time.Second)
	operator := both(bob)
	if s, err := operator.Begin(ctx, "e"); err != nil {
		t.Fatalf("begin: %+v, %v", s, err)
	}
	term, err := elect.New(both(alice), "e", &elect.Options{ID: "alice", History: 3}).Campaign(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := operator.Cutover(ctx, "e"); err != nil {
		t.Fatalf("cutover: %+v, %v", s, err)
	}
	if err := term.Check(); err != nil {
		t.Error(err)
	}
	to := open(t, zookeeper.Options{Prefix: at[1]}, server(t))
	if l, err := elect.New(to, "e", nil).Leader(ctx); err != nil || l.ID != "alice" {
		t.Errorf("the leader on the new coordinator is %+v, %v", l, err)
	}
	if err := term.Resign(ctx); err != nil {
		t.Error(err)
	}
	if h, err := operate.New(to, "e", "").History(ctx); err != nil || len(h) != 1 || h[0].ID != "alice" || h[0].Why == "" {
		t.Errorf("the history on the new coordinator is %+v, %v", h, err)
	}
	if s, err := operator.Finish(ctx, "e"); err != nil {
		t.Errorf("finish: %+v, %v", s, err)
	}
}

// moves is the entry of the ACL of the fence that a candidate needs in a migration.
func moves(t *testing.T) string {
	_, entry, _ := strings.Cut(prescribed(t, "/x", "e", alice), "e.history \"\" ")
	entry, _, _ = strings.Cut(entry, ",")
	return entry
}

// A record that may be written and not deleted loses its data, and is no record then.
func TestDeleteWithoutTheRight(t *testing.T) {
	administer(t, raw(t, server(t)), prescribed(t, chroot(t), "e", alice))
	s := session(t, open(t, zookeeper.Options{Auth: alice}, server(t)))
	ctx := within(t, 20*time.Second)
	if _, err := s.Put(ctx, "e.history", []byte("x"), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(ctx, "e.history", nil); err != nil {
		t.Error(err)
	}
	if r, err := s.Get(ctx, "e.history"); err != nil || r.Version != backend.Absent {
		t.Errorf("after that it is %+v, %v", r, err)
	}
	others := session(t, open(t, zookeeper.Options{}, server(t)))
	if _, err := s.Put(ctx, "e.history", []byte("x"), nil); err != nil {
		t.Fatal(err)
	}
	if err := others.Delete(context.WithoutCancel(ctx), "e.history", nil); !errors.Is(err, backend.ErrDenied) || !strings.Contains(err.Error(), "DELETE") {
		t.Errorf("who may neither write nor delete it: %v", err)
	}
}
