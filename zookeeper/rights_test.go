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

// prescribed returns the commands for an election with that candidate, in which bob is the operator.
func prescribed(t *testing.T, prefix, election string, candidate *zookeeper.Digest) string {
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
	return strings.NewReplacer("CANDIDATE", digest(candidate), "OPERATOR", digest(bob)).Replace(commands)
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
	administer(t, raw(t, server(t)), prescribed(t, chroot(t), "e", alice))
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

// A candidate has no right on the election of somebody else whose name begins with that of its own, and that has begun.
func TestRightsEndAtTheElection(t *testing.T) {
	carol := &zookeeper.Digest{User: "carol", Password: "in the cellar"}
	operator, candidate := raw(t, server(t)), raw(t, server(t))
	administer(t, operator, prescribed(t, chroot(t), "e", alice))
	if err := candidate.AddAuth("digest", []byte(alice.User+":"+alice.Password)); err != nil {
		t.Fatal(err)
	}
	ctx := within(t, 30*time.Second)
	for _, name := range []string{"e2", "e-eu"} {
		administer(t, operator, prescribed(t, chroot(t), name, carol))
		others := elect.New(open(t, zookeeper.Options{Auth: carol}, server(t)), name, &elect.Options{History: 3})
		term, err := others.Campaign(ctx)
		if err != nil {
			t.Fatal(err)
		}
		at := chroot(t) + "/" + name
		first := at + "/" + term.Member().Key
		for what, err := range map[string]error{
			"joins it":              failure(candidate.Create(at+"/n_", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))),
			"makes a reason":        failure(candidate.Create(at+".unready/7", nil, 0, zk.WorldACL(zk.PermAll))),
			"removes its leader":    candidate.Delete(first, -1),
			"overwrites its leader": failure(candidate.Set(first, nil, -1)),
			"writes its header":     failure(candidate.Set(at, []byte(`{"fence":9}`), -1)),
			"writes its fence":      failure(candidate.Set(at+".fence", []byte(`{"fence":9}`), -1)),
			"deletes its fence":     candidate.Delete(at+".fence", -1),
			"writes its history":    failure(candidate.Set(at+".history", nil, -1)),
			"gives itself rights":   failure(candidate.SetACL(at, zk.WorldACL(zk.PermAll), -1)),
		} {
			if err != zk.ErrNoAuth {
				t.Errorf("a candidate of another election than %s %s: %v", name, what, err)
			}
		}
		if err := errors.Join(term.Check(), term.Resign(ctx)); err != nil {
			t.Errorf("the leader of %s: %v", name, err)
		}
	}
}

func put(ctx context.Context, s backend.Session, name string) error {
	_, err := s.Put(ctx, name, []byte("x"), nil)
	return err
}

func failure[T any](_ T, err error) error { return err }
