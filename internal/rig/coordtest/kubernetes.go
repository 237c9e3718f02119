package coordtest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// kubernetesStart bounds the start of one API server, which takes two seconds of two
// processors on a machine that has nothing else to do.
const kubernetesStart = 2 * time.Minute

// KubernetesToken is the bearer token of a client that may do everything.
const KubernetesToken = "for-tests"

// A Kubernetes is one Kubernetes API server, which speaks TLS with a certificate that it
// has made itself, and the etcd that it keeps its data in. There is nothing else of a
// Kubernetes: no controllers, no nodes, and no authorization. Its methods are safe for
// concurrent use; all but Stop are about the API server alone. It cannot be wiped.
type Kubernetes struct {
	Cluster
	etcd   string // address
	binary string
	asker  asker
}

// StartKubernetes starts an etcd and an API server, and blocks until both serve clients; see
// [ServerBinary] for how long that takes the first time. The caller stops them. The options
// are those of the etcd, which may be nil.
func StartKubernetes(ctx context.Context, opts *EtcdOptions) (*Kubernetes, error) {
	binary, err := ServerBinary(ctx, "kube-apiserver")
	if err != nil {
		return nil, err
	}
	e, err := StartEtcd(ctx, opts)
	if err != nil {
		return nil, err
	}
	k, err := startCoordinator(ctx, "Kubernetes", kubernetesStart, func() *Kubernetes {
		return &Kubernetes{etcd: e.Addrs()[0], binary: binary, asker: asker{token: KubernetesToken}}
	})
	if err != nil {
		e.Stop()
		return nil, err
	}
	k.below = &e.Cluster
	return k, nil
}

// NewKubernetes starts a Kubernetes for one test and stops it when the test ends; see
// [StartKubernetes]. The test fails where the API server cannot be built.
func NewKubernetes(t testing.TB, opts *EtcdOptions) *Kubernetes {
	t.Helper()
	k, err := StartKubernetes(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Stop)
	showLogs(t, &k.Cluster)
	return k
}

// create makes the folder of the API server and finds its port.
func (k *Kubernetes) create() (err error) {
	k.leads = func(_ context.Context, s *Server) (*Server, error) { return s, nil }
	if k.dir, err = os.MkdirTemp("", "kubernetes-"); err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	key, tokens := filepath.Join(k.dir, "key.pem"), filepath.Join(k.dir, "tokens.csv")
	if err := writeKey(key); err != nil {
		return err
	}
	if err := os.WriteFile(tokens, []byte(KubernetesToken+",test,test,system:masters\n"), 0o600); err != nil {
		return err
	}
	addr := loopback(ports[0])
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	return k.add(&Server{
		addr: addr,
		log:  filepath.Join(k.dir, "log"),
		spec: spec{
			argv: []string{
				k.binary,
				"--etcd-servers=http://" + k.etcd,
				"--bind-address=127.0.0.1",
				"--advertise-address=127.0.0.1",
				"--secure-port=" + port,
				"--cert-dir=" + filepath.Join(k.dir, "certificates"),
				"--token-auth-file=" + tokens,
				"--anonymous-auth=false",
				"--authorization-mode=AlwaysAllow",
				// The signer of tokens for pods, of which there are none, must be configured.
				"--service-account-issuer=https://kubernetes.default.svc",
				"--service-account-signing-key-file=" + key,
				"--service-account-key-file=" + key,
				"--disable-admission-plugins=ServiceAccount",
				"--service-cluster-ip-range=10.0.0.0/24",
				"--endpoint-reconciler-type=none",
			},
			data:      k.dir,
			reset:     func() error { return fmt.Errorf("wipe an API server: %w", errors.ErrUnsupported) },
			probe:     k.serves,
			portTaken: "address already in use",
		},
	})
}

// writeKey writes a new private key into a file.
func writeKey(path string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

// serves returns nil when the API server at addr is ready, and has made the namespace that
// clients are to use, which it does a little later.
func (k *Kubernetes) serves(ctx context.Context, addr string) error {
	for _, path := range []string{"/readyz", "/api/v1/namespaces/default"} {
		status, answer, err := k.asker.ask(ctx, http.MethodGet, addr, path, "")
		if err != nil {
			return err
		}
		if status != http.StatusOK {
			return fmt.Errorf("%s: status %d: %s", path, status, answer)
		}
	}
	return nil
}
