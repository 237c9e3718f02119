package zookeeper_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/zookeeper"
)

// address returns the URL of a prefix for the test, at the server addr, with the client
// certificate of z. with are other parameters, in pairs; an empty one is left out.
func address(t *testing.T, z *coordtest.SecureZooKeeper, addr string, with ...string) string {
	q := url.Values{
		"ttl": {"20s"}, "connect": {"20s"}, "acl": {"creator"},
		"ca-file": {z.CAFile}, "cert-file": {z.CertFile}, "key-file": {z.KeyFile}, "server-name": {z.ServerName},
	}
	for i := 0; i < len(with); i += 2 {
		q.Del(with[i])
		if with[i+1] != "" {
			q.Set(with[i], with[i+1])
		}
	}
	return "zookeeper://" + addr + chroot(t) + "?" + q.Encode()
}

func TestTLS(t *testing.T) {
	t.Parallel()
	z := coordtest.NewSecureZooKeeper(t)
	other := coordtest.NewSecureZooKeeper(t) // with another authority
	proxy := coordtest.NewProxy(t, z.SecureAddr)
	b, err := succession.Connect(t.Context(), address(t, z, proxy.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := join(t, s, "e", "")
	if p := ahead(t, s, m); !p.First {
		t.Errorf("%+v", p)
	}
	proxy.Reset()
	if l := line(t, s, "e"); len(l.Members) != 1 || l.Members[0] != m {
		t.Errorf("after a reconnect: %+v", l)
	}
	watch := calm.Start(t)
	if err := b.Close(); err != nil && !watch.NotJudged(2*time.Second, "Close: %v", err) {
		t.Error(err)
	}
	watch.Within(time.Second, "Close")

	protectedByCertificate(t, z)

	// What is wrong is said, within the connect timeout.
	wrong := func(addr string, with ...string) string {
		return address(t, z, addr, append(with, "connect", "2s")...)
	}
	for _, test := range []struct {
		name string
		url  string
		says string
	}{
		{"another authority", wrong(z.SecureAddr, "ca-file", other.CAFile), "unknown authority"},
		{"another name", wrong(z.SecureAddr, "server-name", "elsewhere.test"), "elsewhere.test"},
		{"no name", wrong(z.SecureAddr, "server-name", ""), "127.0.0.1"},
		{"no client certificate", wrong(z.SecureAddr, "cert-file", "", "key-file", "", "acl", ""), "cert-file"},
		{"a stranger's client certificate", wrong(z.SecureAddr, "cert-file", other.CertFile, "key-file", other.KeyFile), "cert-file"},
		{"TLS with clientPort", wrong(z.Addrs()[0]), "secureClientPort"},
		{"no TLS with secureClientPort", "zookeeper://" + z.SecureAddr + "?connect=2s", "tls=on"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			watch := calm.Start(t)
			b, err := succession.Connect(t.Context(), test.url)
			if err == nil {
				b.Close()
			}
			if !errors.Is(err, backend.ErrUnavailable) {
				t.Fatal(err)
			}
			if !strings.Contains(err.Error(), test.says) && !watch.NotJudged(time.Second, "%v; want %q", err, test.says) {
				t.Errorf("%v; want %q", err, test.says)
			}
			watch.Within(3*time.Second, "Open")
			t.Log(err)
		})
	}
}

// From TLS 1.3 on a client hears that its certificate is missing after it has shaken hands.
func TestRefusalAfterHandshake(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAnyClientCert}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	b := open(t, zookeeper.Options{ConnectTimeout: 2 * time.Second, TLS: &tls.Config{RootCAs: roots}}, server.Listener.Addr().String())
	watch := calm.Start(t)
	_, err := b.Session(t.Context())
	if !errors.Is(err, backend.ErrUnavailable) {
		t.Fatal(err)
	}
	if !strings.Contains(err.Error(), "cert-file") && !watch.NotJudged(time.Second, "%v", err) {
		t.Error(err)
	}
}

// protectedByCertificate tests who may change what a client with a certificate creates.
func protectedByCertificate(t *testing.T, z *coordtest.SecureZooKeeper) {
	if b, err := succession.Connect(t.Context(), address(t, z, z.SecureAddr, "acl", "")); !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), "acl=creator") {
		if err == nil {
			b.Close()
		}
		t.Errorf("a certificate, and no word of whose znodes are: %v", err)
	}
	candidate := func(acl string) backend.Session {
		b, err := succession.Connect(t.Context(), address(t, z, z.SecureAddr, "acl", acl))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		return session(t, b.(*zookeeper.Backend))
	}
	stranger := raw(t, z.Addrs()[0])
	leader, heir := candidate("creator"), candidate("creator")
	m, next := join(t, leader, "mine", ""), join(t, heir, "mine", "")
	if err := stranger.Delete(chroot(t)+"/mine/"+m.Key, -1); err != zk.ErrNoAuth {
		t.Errorf("a stranger deleted the leader: %v", err)
	}
	if _, err := stranger.Set(chroot(t)+"/mine", nil, -1); err != zk.ErrNoAuth {
		t.Errorf("a stranger wrote the record: %v", err)
	}
	acl, _, err := stranger.GetACL(chroot(t) + "/mine/" + m.Key)
	if want := []zk.ACL{{Perms: zk.PermAll, Scheme: "x509", ID: "CN=client"}, zk.WorldACL(zk.PermRead)[0]}; err != nil || !slices.Equal(acl, want) {
		t.Errorf("ACL of a member: %+v, %v, want %+v", acl, err, want)
	}
	if err := leader.Leave(t.Context(), m); err != nil {
		t.Error(err)
	}
	if p := ahead(t, heir, next); !p.First {
		t.Errorf("%+v", p)
	}
	m = join(t, candidate("open"), "open", "")
	if err := stranger.Delete(chroot(t)+"/open/"+m.Key, -1); err != nil {
		t.Errorf("a stranger could not delete what is open: %v", err)
	}
}
