package etcd_test

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/rig/certs"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// A log has what was warned of.
type warnings struct {
	mu   sync.Mutex
	text strings.Builder
	told chan struct{}
}

func (w *warnings) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.Contains(string(line), "version=") {
		w.text.Write(line)
		select {
		case w.told <- struct{}{}:
		default:
		}
	}
	return len(line), nil
}

func (w *warnings) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// Whoever opens an etcd that has users, and is too old for that, is told so once; by name and by certificate.
func TestOldEtcdIsTold(t *testing.T) {
	t.Parallel()
	issuer := certs.New(t, "authority")
	cert, key := issue(t, issuer, "root")
	start := func() *coordtest.Etcd {
		return coordtest.NewEtcd(t, &coordtest.EtcdOptions{CertFile: cert, KeyFile: key, ClientCAFile: issuer.File, Args: []string{"--bcrypt-cost=4"}})
	}
	open, secured := start(), start()
	root := rootOf(t, secured, issuer.File, cert, key)
	check(t)(root.UserChangePassword(t.Context(), "root", "secret"))
	for _, c := range []struct {
		name   string
		client func() *clientv3.Client
		old    bool
		told   bool
	}{
		{"no users", func() *clientv3.Client { return connected(t, open, issuer.File, cert, key) }, true, false},
		{"by certificate", func() *clientv3.Client { return connected(t, secured, issuer.File, cert, key) }, true, true},
		{"by name", func() *clientv3.Client {
			cfg := clientv3.Config{Endpoints: secured.Addrs(), TLS: tlsOf(t, issuer.File, cert, key), Username: "root", Password: "secret", Logger: zap.NewNop()}
			cl, err := clientv3.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { cl.Close() })
			return cl
		}, true, true},
		{"not old", func() *clientv3.Client { return connected(t, secured, issuer.File, cert, key) }, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &warnings{told: make(chan struct{}, 1)}
			b, err := etcd.New(c.client(), &etcd.Options{TTL: patient, ConnectTimeout: opening, Logger: slog.New(slog.NewTextHandler(w, nil))})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			if c.old {
				etcd.TakeForOld(b)
			}
			s, err := b.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if c.told {
				select {
				case <-w.told:
				case <-time.After(time.Minute):
					t.Fatal("nothing is told")
				}
			}
			if err := errors.Join(s.Close(t.Context()), b.Close()); err != nil { // which waits for who would tell
				t.Error(err)
			}
			if n := strings.Count(w.String(), "use 3.99.0 or later"); (n == 1) != c.told || n > 1 {
				t.Errorf("it is told %d times: %s", n, w)
			}
		})
	}
}
