package etcd_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/rig/certs"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// prescribed returns what the commands for the election grant to each role.
func prescribed(t *testing.T, election string) map[string][]grant {
	t.Helper()
	u, err := coordinator.ParseURL("etcd://h/app")
	if err != nil {
		t.Fatal(err)
	}
	commands, err := etcd.Rights(u, election)
	if err != nil {
		t.Fatal(err)
	}
	roles := make(map[string][]grant)
	for _, line := range strings.Split(commands, "\n") {
		args, ok := strings.CutPrefix(line, "etcdctl role grant-permission ")
		if !ok {
			continue
		}
		words := strings.Fields(args)
		for _, op := range []string{"read", "write"} {
			if strings.Contains(words[1], op) {
				roles[words[0]] = append(roles[words[0]], grant{op, words[2], len(words) == 4})
			}
		}
	}
	return roles
}

// The prescribed roles are enough for a candidate, an operator and who only looks, and give none of them more.
func TestPrescribedRoles(t *testing.T) {
	t.Parallel()
	issuer := certs.New(t, "authority")
	cert, key := issue(t, issuer, "root")
	server := coordtest.NewEtcd(t, &coordtest.EtcdOptions{
		CertFile: cert, KeyFile: key, ClientCAFile: issuer.File, Args: []string{"--bcrypt-cost=4"},
	})
	operator := rootOf(t, server, issuer.File, cert, key)
	roles := prescribed(t, "svc")
	as := func(user string) backend.Backend { return openAs(t, server, operator, issuer, user, roles[user]) }
	candidate, looks, operates := as("candidate"), as("observer"), as("operator")
	ctx := within(t, time.Minute)
	ready := func(context.Context) error { return nil }
	e := elect.New(candidate, "svc", &elect.Options{Priority: 1, Ready: ready, History: 3})
	term, err := e.Campaign(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s, err := candidate.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	own := &backend.If{Member: term.Member()}
	unready := "svc.unready/" + strconv.FormatUint(term.Member().Position, 10)
	_, unreadyErr := s.Put(ctx, unready, []byte("x"), own)
	_, bellErr := s.Put(ctx, "svc.unready", nil, nil)
	_, _, lineErr := elect.New(looks, "svc", nil).Line(ctx)
	_, historyErr := operate.New(looks, "svc", "").History(ctx)
	_, seenErr := elect.New(looks, "svc", nil).Leader(ctx)
	for what, err := range map[string]error{
		"a candidate acknowledges":             term.Acknowledge(ctx),
		"a candidate is not ready":             errors.Join(unreadyErr, bellErr, s.Delete(ctx, unready, nil)),
		"an operator raises the fence":         operate.New(operates, "svc", "").RaiseFence(ctx, 1000),
		"who only looks sees the line":         lineErr,
		"who only looks sees its history":      historyErr,
		"who only looks sees its first member": seenErr,
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	denied := map[string]error{
		"a candidate raises the kept fence": operate.New(candidate, "svc", "").RaiseFence(ctx, 2000),
		"who only looks raises the fence":   operate.New(looks, "svc", "").RaiseFence(ctx, 2000),
	}
	_, denied["who only looks joins"] = elect.New(looks, "svc", nil).Campaign(ctx)
	for _, name := range []string{"svc2/x", "svc-eu", "svc-eu.fence", "svc.fence", "svc.unready2"} {
		_, denied["a candidate writes "+name] = s.Put(ctx, name, nil, nil)
	}
	for what, err := range denied {
		if !errors.Is(err, backend.ErrDenied) {
			t.Errorf("%s: %v; want ErrDenied", what, err)
		}
	}
	held, err := operator.Get(ctx, "app/svc/"+term.Member().Key)
	if err != nil || len(held.Kvs) != 1 {
		t.Fatal(held, err)
	}
	leader, lease := string(held.Kvs[0].Key), clientv3.LeaseID(held.Kvs[0].Lease)
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(rpctypes.Error(err), rpctypes.ErrPermissionDenied) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// writesNone returns a client of the user, who can write none of the keys.
	writesNone := func(user string, keys ...string) *clientv3.Client {
		t.Helper()
		client := clientOf(t, server, issuer, user)
		for _, key := range keys {
			_, err := client.Put(ctx, key, "")
			refused(user+" writes "+key, err)
			_, err = client.Delete(ctx, key)
			refused(user+" deletes "+key, err)
		}
		return client
	}
	writesNone("candidate", "app/svc2/x", "app/svc2", "app/svc-eu", "app/svc-eu.fence", "app/svc.fence")
	check(t)(operator.UserAddWithOptions(ctx, "nobody", "", &clientv3.UserAddOptions{NoPassword: true})) // without a role
	for _, user := range []string{"nobody", "observer"} {
		client := writesNone(user, leader, "app/svc", "app/svc.fence", "app/svc.history", "app/svc.unready")
		if user == "nobody" {
			_, err := client.Get(ctx, leader)
			refused("nobody reads", err)
		}
		// A lease belongs to whoever may write all its keys; one without a key is anybody's.
		_, err := client.Revoke(ctx, lease)
		refused(user+" revokes the lease of a leader", err)
		_, err = client.KeepAliveOnce(ctx, lease)
		refused(user+" keeps the lease of a leader alive", err)
		idle, err := operator.Grant(ctx, 60)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Revoke(ctx, idle.ID); err != nil {
			t.Errorf("%s revokes a lease without a key: %v", user, err)
		}
	}
	if err := term.Resign(ctx); err != nil {
		t.Error(err)
	}
}

// clientOf returns a client of etcd with the certificate of a user.
func clientOf(t *testing.T, server *coordtest.Etcd, issuer *certs.Certificate, user string) *clientv3.Client {
	t.Helper()
	cert, key := issue(t, issuer, user)
	return connected(t, server, issuer.File, cert, key)
}

// What each right gives, as the page says, beside what it is for.
func TestWhatRightsGive(t *testing.T) {
	t.Parallel()
	issuer := certs.New(t, "authority")
	cert, key := issue(t, issuer, "root")
	server := coordtest.NewEtcd(t, &coordtest.EtcdOptions{
		CertFile: cert, KeyFile: key, ClientCAFile: issuer.File, Args: []string{"--bcrypt-cost=4"},
	})
	operator := rootOf(t, server, issuer.File, cert, key)
	roles := prescribed(t, "svc")
	owner := openAs(t, server, operator, issuer, "operator", roles["operator"])
	ctx := within(t, time.Minute)
	session := func(b backend.Backend) backend.Session {
		t.Helper()
		s, err := b.Session(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	member := session(openAs(t, server, operator, issuer, "candidate", roles["candidate"]))
	leads := session(owner)

	// All of the line, and nothing finer: a candidate removes the leader, and makes a member that stands for ever.
	first := join(t, leads, "svc", "leader")
	if r, err := clientOf(t, server, issuer, "candidate").Delete(ctx, "app/svc/"+first.Key); err != nil || r.Deleted != 1 {
		t.Error("a candidate removes another's member:", r, err)
	}
	gate := join(t, member, "svc", "for ever")
	if err := member.Pin(ctx, gate, backend.Header{}, backend.Absent); err != nil {
		t.Error("a candidate pins a member:", err)
	}
	if err := member.Leave(ctx, gate); err != nil {
		t.Error(err)
	}

	// The header: the fence, and who is asked to resign.
	if _, err := member.Put(ctx, "svc", header.Header{Fence: 77, Resign: 7, Choice: header.Choice{Readiness: true}}.Encode(), nil); err != nil {
		t.Error("a candidate writes the header:", err)
	}

	// What is beside it: slander, and a made-up history.
	m := join(t, leads, "svc", "web-1\nx")
	if _, err := member.Put(ctx, "svc.unready/"+strconv.FormatUint(m.Position, 10), []byte("slander"), nil); err != nil {
		t.Error("a candidate says of another that it is not ready:", err)
	}
	if _, l, err := elect.New(owner, "svc", nil).Line(ctx); err != nil || len(l) != 1 || l[0].NotReady != "slander" {
		t.Errorf("the line is %+v, %v", l, err)
	}
	if _, err := member.Put(ctx, "svc.history", []byte(`{"history":1,"terms":[{"token":7,"id":"nobody","began":"2026-01-01T00:00:00Z"}]}`), nil); err != nil {
		t.Error("a candidate writes the history:", err)
	}
	if h, err := operate.New(owner, "svc", "").History(ctx); err != nil || len(h) != 1 || h[0].ID != "nobody" {
		t.Errorf("the history is %+v, %v", h, err)
	}
	if err := leads.Leave(ctx, m); err != nil {
		t.Error(err)
	}

	// The copy of the fence counts for each candidate that joins from then on.
	if _, err := leads.Put(ctx, "svc.fence", backend.Header{Fence: 1 << 40}.Encode(), nil); err != nil {
		t.Error(err)
	}
	term, err := elect.New(owner, "svc", nil).Campaign(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if term.Token() < 1<<40 {
		t.Errorf("the token is %d", term.Token())
	}
	if err := term.Resign(ctx); err != nil {
		t.Error(err)
	}

	// A prefix without the slash is the beginning of other elections, too.
	wide := session(openAs(t, server, operator, issuer, "wide", []grant{{"read", "app/svc", true}, {"write", "app/svc", true}}))
	for _, name := range []string{"svc2.fence", "svc-eu"} {
		if _, err := wide.Put(ctx, name, backend.Header{Fence: 9}.Encode(), nil); err != nil {
			t.Errorf("with the prefix app/svc %s cannot be written: %v", name, err)
		}
	}
}

// Whoever may write any key can attach it to a lease that has none, if they know its number, such as that of a candidate that
// has left. The candidate then stands by another lease.
func TestLeaseOfOthers(t *testing.T) {
	t.Parallel()
	issuer := certs.New(t, "authority")
	cert, key := issue(t, issuer, "root")
	server := coordtest.NewEtcd(t, &coordtest.EtcdOptions{
		CertFile: cert, KeyFile: key, ClientCAFile: issuer.File, Args: []string{"--bcrypt-cost=4"},
	})
	operator := rootOf(t, server, issuer.File, cert, key)
	b := openAs(t, server, operator, issuer, "candidate", prescribed(t, "svc")["candidate"])
	openAs(t, server, operator, issuer, "other", prescribed(t, "other")["candidate"])
	other := clientOf(t, server, issuer, "other")
	ctx := within(t, time.Minute)
	e := elect.New(b, "svc", nil)
	term, err := e.Campaign(ctx)
	if err != nil {
		t.Fatal(err)
	}
	held, err := operator.Get(ctx, "app/svc/"+term.Member().Key)
	if err != nil || len(held.Kvs) != 1 {
		t.Fatal(held, err)
	}
	attach := func() error {
		_, err := other.Put(ctx, "app/other/x", "", clientv3.WithLease(clientv3.LeaseID(held.Kvs[0].Lease)))
		return err
	}
	if err := attach(); !errors.Is(rpctypes.Error(err), rpctypes.ErrPermissionDenied) {
		t.Errorf("a candidate of another election attaches a key to the lease of a leader: %v", err)
	}
	if err := term.Resign(ctx); err != nil {
		t.Fatal(err)
	}
	if err := attach(); err != nil {
		t.Fatal(err)
	}
	if term, err = e.Campaign(ctx); err != nil {
		t.Fatal(err)
	}
	if err := term.Resign(ctx); err != nil {
		t.Error(err)
	}
	s, err := b.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(ctx), b.Close()); err != nil {
		t.Error(err)
	}
}
