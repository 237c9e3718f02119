package zookeeper_test

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/zookeeper"
)

// prescribed returns the commands for an election in which alice is a candidate and bob the operator.
func prescribed(t *testing.T, prefix, election string) string {
	t.Helper()
	u, err := coordinator.ParseURL("zookeeper://h" + prefix)
	if err != nil {
		t.Fatal(err)
	}
	digest := func(d *zookeeper.Digest) string {
		sum := sha1.Sum([]byte(d.User + ":" + d.Password))
		return "digest:" + d.User + ":" + base64.StdEncoding.EncodeToString(sum[:])
	}
	commands, err := zookeeper.Rights(u, election)
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("CANDIDATE", digest(alice), "OPERATOR", digest(bob)).Replace(commands)
}

// administer does what the commands say, as bob and as ZooKeeper's shell does it: what is made without an ACL is everybody's.
func administer(t *testing.T, op *zk.Conn, commands string) {
	t.Helper()
	if err := op.AddAuth("digest", []byte(bob.User+":"+bob.Password)); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(commands, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		acl := zk.WorldACL(zk.PermAll)
		if len(words) == 4 {
			acl = nil
			for _, entry := range strings.Split(words[3], ",") {
				scheme, rest, _ := strings.Cut(entry, ":")
				at := strings.LastIndex(rest, ":")
				var p int32
				for _, r := range rest[at+1:] {
					p |= map[rune]int32{'c': zk.PermCreate, 'd': zk.PermDelete, 'r': zk.PermRead, 'w': zk.PermWrite, 'a': zk.PermAdmin}[r]
				}
				acl = append(acl, zk.ACL{Perms: p, Scheme: scheme, ID: rest[:at]})
			}
		}
		if _, err := op.Create(words[1], nil, 0, acl); err != nil && err != zk.ErrNodeExists { // folders may be there
			t.Fatal(line, err)
		}
	}
}

// The prescribed ACLs are enough for a candidate, an operator and who only looks, and give none of them more.
func TestPrescribedRights(t *testing.T) {
	administer(t, raw(t, server(t)), prescribed(t, chroot(t), "e"))
	stranger := raw(t, server(t))
	for _, name := range []string{"~deletions", "e", "e.fence", "e.history", "e.unready", "e.spread"} {
		if err := stranger.Delete(chroot(t)+"/"+name, -1); err != zk.ErrNoAuth {
			t.Errorf("who has no right deletes %s: %v", name, err)
		}
	}
	if _, err := stranger.Create(chroot(t)+"/other", nil, 0, zk.WorldACL(zk.PermAll)); err != zk.ErrNoAuth {
		t.Errorf("who has no right makes another election: %v", err)
	}
	as := func(who *zookeeper.Digest, o *elect.Options) *elect.Election {
		return elect.New(open(t, zookeeper.Options{Auth: who}, server(t)), "e", o)
	}
	ctx := within(t, 30*time.Second)
	raise := func(who *zookeeper.Digest, floor uint64) error {
		return operate.New(open(t, zookeeper.Options{Auth: who}, server(t)), "e", "").RaiseFence(ctx, floor)
	}
	ready := func(context.Context) error { return nil }
	candidate := as(alice, &elect.Options{Priority: 1, Ready: ready, History: 3})
	term, err := candidate.Campaign(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := term.Acknowledge(ctx); err != nil {
		t.Error(err)
	}
	if err := raise(bob, 1000); err != nil {
		t.Error("operator:", err)
	}
	looks := as(nil, nil)
	if l, err := looks.Leader(ctx); err != nil || l.Key != term.Member().Key {
		t.Errorf("who only looks sees %+v, %v", l, err)
	}
	if _, err := operate.New(open(t, zookeeper.Options{}, server(t)), "e", "").History(ctx); err != nil {
		t.Error("who only looks:", err)
	}
	if err := term.Resign(ctx); err != nil {
		t.Error(err)
	}
	s := session(t, open(t, zookeeper.Options{Auth: alice}, server(t)))
	m := join(t, s, "e", "")
	own := &backend.If{Member: m}
	for _, name := range []string{"e.unready/" + strconv.FormatUint(m.Position, 10), "e.unready", "e.history"} {
		if _, err := s.Put(ctx, name, []byte("x"), own); err != nil {
			t.Errorf("a candidate writes %s: %v", name, err)
		}
	}
	if err := s.Delete(ctx, "e.unready/"+strconv.FormatUint(m.Position, 10), nil); err != nil {
		t.Error(err)
	}
	denied := map[string]error{
		"a candidate raises the kept fence":  raise(alice, 2000),
		"a candidate makes a record":         put(ctx, s, "other.fence"),
		"who only looks joins":               failure(looks.Campaign(ctx)),
		"who only looks raises the fence":    raise(nil, 2000),
		"who only looks writes readiness":    put(ctx, session(t, open(t, zookeeper.Options{}, server(t))), "e.unready/7"),
		"a candidate makes another election": failure(elect.New(open(t, zookeeper.Options{Auth: alice}, server(t)), "other", nil).Campaign(ctx)),
	}
	for what, err := range denied {
		if !errors.Is(err, backend.ErrDenied) {
			t.Errorf("%s: %v; want ErrDenied", what, err)
		}
	}
}

func put(ctx context.Context, s backend.Session, name string) error {
	_, err := s.Put(ctx, name, []byte("x"), nil)
	return err
}

func failure[T any](_ T, err error) error { return err }
