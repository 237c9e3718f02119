package zookeeper_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/coordtest"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	z := coordtest.NewSecureZooKeeper(t)
	other := coordtest.NewSecureZooKeeper(t) // with another authority
	proxy := coordtest.NewProxy(t, z.SecureAddr)
	all := map[string]string{
		"ca-file": z.CAFile, "cert-file": z.CertFile, "key-file": z.KeyFile, "server-name": z.ServerName,
	}
	address := func(addr string, with ...string) string {
		q := url.Values{"session": {"2s"}, "connect": {"2s"}}
		for k, v := range all {
			q.Set(k, v)
		}
		for i := 0; i < len(with); i += 2 {
			q.Del(with[i])
			if with[i+1] != "" {
				q.Set(with[i], with[i+1])
			}
		}
		return "zookeeper://" + addr + chroot(t) + "?" + q.Encode()
	}

	b, err := backend.Open(t.Context(), address(proxy.Addr()))
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
	begin := time.Now()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > time.Second {
		t.Errorf("Close took %v", took)
	}

	// What is wrong is said, within the connect timeout.
	for _, test := range []struct {
		name string
		url  string
		says string
	}{
		{"another authority", address(z.SecureAddr, "ca-file", other.CAFile), "unknown authority"},
		{"another name", address(z.SecureAddr, "server-name", "elsewhere.test"), "elsewhere.test"},
		{"no name", address(z.SecureAddr, "server-name", ""), "127.0.0.1"},
		{"no client certificate", address(z.SecureAddr, "cert-file", "", "key-file", ""), "cert-file"},
		{"a stranger's client certificate", address(z.SecureAddr, "cert-file", other.CertFile, "key-file", other.KeyFile), "cert-file"},
		{"TLS with clientPort", address(z.Addrs()[0]), "secureClientPort"},
		{"no TLS with secureClientPort", "zookeeper://" + z.SecureAddr + "?connect=2s", "tls=on"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			b, err := backend.Open(t.Context(), test.url)
			if err == nil {
				b.Close()
			}
			if !errors.Is(err, backend.ErrUnavailable) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v; want %q", err, test.says)
			}
			if took := time.Since(begin); took > 3*time.Second {
				t.Errorf("took %v", took)
			}
			t.Log(err)
		})
	}
}
