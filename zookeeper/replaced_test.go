package zookeeper_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/certs"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// openAt opens a backend that ends with the test, and returns its session.
func openAt(t *testing.T, url string) backend.Session {
	t.Helper()
	b, err := succession.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// All certificates are replaced, and their authority. A leader connects again.
func TestAuthorityReplaced(t *testing.T) {
	t.Parallel()
	z := coordtest.NewSecureZooKeeper(t)
	dir := t.TempDir()
	ca, cert, key := filepath.Join(dir, "ca"), filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	take := func() {
		certs.Replace(t, ca, z.CAFile)
		certs.Replace(t, cert, z.CertFile)
		certs.Replace(t, key, z.KeyFile)
	}
	take()
	q := url.Values{"ttl": {"2m"}, "connect": {"20s"}, "acl": {"creator"}, "ca-file": {ca}, "cert-file": {cert}, "key-file": {key}, "server-name": {z.ServerName}}
	s := openAt(t, "zookeeper://"+z.SecureAddr+chroot(t)+"?"+q.Encode())
	m := join(t, s, "e", "")

	z.Reissue(t)
	take()
	if p, err := s.Ahead(within(t, time.Minute), m); err != nil || !p.First {
		t.Fatalf("%+v, %v; want first", p, err)
	}
}

func writePassword(t *testing.T, file, password string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The password of the user is replaced, and then the user with the old one loses all rights. The
// connection that has shown the old one gives way to another, and nothing is denied.
func TestPasswordReplaced(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	writePassword(t, file, "old")
	at := "zookeeper://" + server(t) + chroot(t) + "?ttl=20s&connect=20s&user=alice&password-file=" + file
	s, waiter := openAt(t, at), openAt(t, at)
	m := join(t, s, "e", "")
	if _, err := s.Put(t.Context(), "e", []byte("{}"), nil); err != nil {
		t.Fatal(err)
	}
	writePassword(t, file, "new")
	op := raw(t, server(t))
	if err := op.AddAuth("digest", []byte("alice:old")); err != nil {
		t.Fatal(err)
	}
	acl := append(zk.DigestACL(zk.PermAll, "alice", "new"), zk.WorldACL(zk.PermRead)...)
	for _, path := range []string{chroot(t) + "/e/" + m.Key, chroot(t) + "/e", chroot(t)} {
		if _, err := op.SetACL(path, acl, -1); err != nil {
			t.Fatal(err)
		}
	}
	join(t, waiter, "e", "")
	if _, err := s.Put(within(t, time.Minute), "e", []byte("{}"), &backend.If{Member: m}); err != nil {
		t.Errorf("a guarded write: %v", err)
	}
	if err := s.Leave(within(t, time.Minute), m); err != nil {
		t.Error(err)
	}
	if err := s.Err(); err != nil {
		t.Error(err)
	}
}

// So does one that begins to watch what only the new password may read: it looks with that, and its calls go on.
func TestPasswordReplacedWhileItWatches(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	writePassword(t, file, "old")
	s := openAt(t, "zookeeper://"+server(t)+chroot(t)+"?ttl=20s&connect=20s&user=alice&password-file="+file)
	m := join(t, s, "e", "")
	h := backend.Header{}
	if _, err := s.Put(t.Context(), "e", h.Encode(), nil); err != nil {
		t.Fatal(err)
	}
	p := ahead(t, s, m)
	op := raw(t, server(t))
	for _, password := range []string{"old", "new"} {
		if err := op.AddAuth("digest", []byte("alice:"+password)); err != nil {
			t.Fatal(err)
		}
	}
	writePassword(t, file, "new")
	acl := zk.DigestACL(zk.PermAll, "alice", "new")
	for _, path := range []string{chroot(t) + "/e/" + m.Key, chroot(t) + "/e", chroot(t)} {
		if _, err := op.SetACL(path, acl, -1); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan error, 1)
	go func() { told <- s.WatchPlace(ctx, m, &p) }()
	still(t, told, time.Second) // it watches, with the new password
	h.Fence = 7
	if _, err := op.Set(chroot(t)+"/e", h.Encode(), -1); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-told:
		if err != nil || p.Header.Fence != 7 {
			t.Errorf("the leader is told %+v, %v", p, err)
		}
	case <-time.After(time.Minute):
		t.Error("the leader is not told what the header says")
	}
	cancel()
	left := make(chan error, 1)
	go func() { left <- s.Leave(within(t, 10*time.Second), m) }()
	select {
	case err := <-left:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("Leave has not returned, although its context has ended")
	}
}
