package etcd_test

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/rig/certs"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// prescribed returns what the commands for the election grant to each role.
func prescribed(t *testing.T, election string) map[string][]grant {
	t.Helper()
	u, err := backend.ParseURL("etcd://h/app")
	if err != nil {
		t.Fatal(err)
	}
	roles := make(map[string][]grant)
	for _, line := range strings.Split(etcd.Rights(u, election), "\n") {
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
	ctx := within(t, 30*time.Second)
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
	_, lineErr := elect.New(looks, "svc", nil).Line(ctx)
	_, historyErr := elect.New(looks, "svc", nil).History(ctx)
	_, seenErr := elect.New(looks, "svc", nil).Leader(ctx)
	for what, err := range map[string]error{
		"a candidate acknowledges":             term.Acknowledge(ctx),
		"a candidate is not ready":             errors.Join(unreadyErr, bellErr, s.Delete(ctx, unready, nil)),
		"an operator raises the fence":         elect.New(operates, "svc", nil).RaiseFence(ctx, 1000),
		"who only looks sees the line":         lineErr,
		"who only looks sees its history":      historyErr,
		"who only looks sees its first member": seenErr,
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	denied := map[string]error{
		"a candidate raises the kept fence": e.RaiseFence(ctx, 2000),
		"who only looks raises the fence":   elect.New(looks, "svc", nil).RaiseFence(ctx, 2000),
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
	// A lease belongs to whoever may write all its keys; one without a key is anybody's.
	idle, err := operator.Grant(ctx, 60)
	if err != nil {
		t.Fatal(err)
	}
	held, err := operator.Get(ctx, "app/svc/"+term.Member().Key)
	if err != nil || len(held.Kvs) != 1 {
		t.Fatal(held, err)
	}
	stranger := clientOf(t, server, issuer, "observer")
	if _, err := stranger.Revoke(ctx, clientv3.LeaseID(held.Kvs[0].Lease)); !errors.Is(rpctypes.Error(err), rpctypes.ErrPermissionDenied) {
		t.Errorf("who only looks revoked the lease of a leader: %v", err)
	}
	if _, err := stranger.KeepAliveOnce(ctx, clientv3.LeaseID(held.Kvs[0].Lease)); !errors.Is(rpctypes.Error(err), rpctypes.ErrPermissionDenied) {
		t.Errorf("who only looks kept the lease of a leader alive: %v", err)
	}
	if _, err := stranger.Revoke(ctx, idle.ID); err != nil {
		t.Errorf("a lease without a key: %v", err)
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

// The page shows the commands as they are printed.
func TestRightsOnThePage(t *testing.T) {
	u, err := backend.ParseURL("etcd://h1/app")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/etcd.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := "```sh\n" + etcd.Rights(u, "jobs") + "```\n"; !strings.Contains(string(page), want) {
		t.Errorf("docs/etcd.md lacks\n%s", want)
	}
}
