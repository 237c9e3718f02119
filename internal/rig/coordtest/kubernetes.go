package coordtest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// kubernetesStart bounds the start of one API server, which takes two seconds of two
// processors on a machine that has nothing else to do.
const kubernetesStart = 2 * time.Minute

// KubernetesToken is the bearer token of a client that may do everything.
const KubernetesToken = "for-tests"

// KubernetesOptions are the options of a Kubernetes; the zero value of each field is its default.
type KubernetesOptions struct {
	// Servers is the number of API servers, which keep their data in one etcd: 1 by default.
	Servers int
	// Oldest has them be of the oldest version that package kubernetes works with, and not of the newest.
	Oldest bool
	// Etcd are the options of that etcd. Its number of servers is another one.
	Etcd *EtcdOptions
	// Users turns authorization on (RBAC), for these users, who have no right at first. The token of each is [KubernetesUserToken].
	Users []string
}

// KubernetesUserToken returns the bearer token of a user of the options.
func KubernetesUserToken(user string) string { return "for-" + user }

// A Kubernetes is some Kubernetes API servers, which speak TLS with certificates that they
// have made themselves, and the etcd that they keep their data in. There is nothing else of a
// Kubernetes: no controllers and no nodes. Its methods are safe for concurrent use. Those of Cluster but Stop are about the API servers alone.
type Kubernetes struct {
	Cluster
	opts   KubernetesOptions
	etcd   *Etcd
	binary string
	asker  asker
}

// StartKubernetes starts an etcd and an API server, and blocks until both serve clients; see
// [ServerBinary] for how long that takes the first time. The caller stops them. opts may be nil.
func StartKubernetes(ctx context.Context, opts *KubernetesOptions) (*Kubernetes, error) {
	var o KubernetesOptions
	if opts != nil {
		o = *opts
	}
	o.Servers = max(o.Servers, 1)
	name := apiServer
	if o.Oldest {
		name = oldestAPIServer
	}
	binary, err := ServerBinary(ctx, name)
	if err != nil {
		return nil, err
	}
	e, err := StartEtcd(ctx, o.Etcd)
	if err != nil {
		return nil, err
	}
	k, err := startCoordinator(ctx, "Kubernetes", kubernetesStart, func() *Kubernetes {
		return &Kubernetes{opts: o, etcd: e, binary: binary, asker: asker{token: KubernetesToken}}
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
func NewKubernetes(t testing.TB, opts *KubernetesOptions) *Kubernetes {
	t.Helper()
	k, err := StartKubernetes(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Stop)
	showLogs(t, &k.Cluster)
	return k
}

// Etcd returns the etcd below.
func (k *Kubernetes) Etcd() *Etcd { return k.etcd }

// CA returns the certificates by which clients know the API servers, as PEM.
func (k *Kubernetes) CA() ([]byte, error) {
	var all []byte
	for i := range k.servers {
		b, err := os.ReadFile(filepath.Join(k.certificates(i), "apiserver.crt"))
		if err != nil {
			return nil, err
		}
		all = append(all, b...)
	}
	return all, nil
}

// WriteConfig writes a kubeconfig for the API server at addr, which may be a proxy's, and a client with the token. Who reads it meanwhile gets the old one.
func (k *Kubernetes) WriteConfig(path, addr, token string) error {
	ca, err := k.CA()
	if err != nil {
		return err
	}
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: test
clusters: [{name: test, cluster: {server: "https://%s", certificate-authority-data: %s}}]
users: [{name: test, user: {token: %s}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
`, addr, base64.StdEncoding.EncodeToString(ca), token)
	return errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path))
}

func (k *Kubernetes) certificates(i int) string {
	return filepath.Join(k.dir, fmt.Sprintf("certificates-%d", i))
}

// Wipe restarts all, with an etcd that is empty.
func (k *Kubernetes) Wipe(ctx context.Context) error {
	k.Kill()
	if err := k.etcd.Wipe(ctx); err != nil {
		return err
	}
	return k.start(ctx)
}

// Backup copies the data of the etcd; see [Cluster.Backup]. What it returns restores them while no API server runs, as an operator is told to
// do, and starts all again.
func (k *Kubernetes) Backup(ctx context.Context) (restore func(context.Context) error, err error) {
	back, err := k.etcd.Backup(ctx)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		k.Kill()
		if err := back(ctx); err != nil {
			return err
		}
		return k.start(ctx)
	}, nil
}

// Compact has the etcd forget its history. API servers keep some of it in memory.
func (k *Kubernetes) Compact(ctx context.Context) error {
	ask := func(path, body string) (string, error) {
		status, answer, err := asker{}.ask(ctx, http.MethodPost, k.etcd.Addrs()[0], path, body)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%s: status %d: %s", path, status, answer)
		}
		return answer, err
	}
	answer, err := ask("/v3/kv/range", `{"key":"AA=="}`)
	if err != nil {
		return err
	}
	var now struct {
		Header struct{ Revision string }
	}
	if err := json.Unmarshal([]byte(answer), &now); err != nil {
		return err
	}
	_, err = ask("/v3/kv/compaction", fmt.Sprintf(`{"revision":%q}`, now.Header.Revision))
	return err
}

// create makes the folder of the API servers and finds their ports.
func (k *Kubernetes) create() (err error) {
	k.leads = func(_ context.Context, s *Server) (*Server, error) { return s, nil }
	if err := k.makeFolder("kubernetes-", false, ""); err != nil {
		return err
	}
	ports, err := freePorts(k.opts.Servers)
	if err != nil {
		return err
	}
	key, tokens := filepath.Join(k.dir, "key.pem"), filepath.Join(k.dir, "tokens.csv")
	if err := writeKey(key); err != nil {
		return err
	}
	mode, users := "AlwaysAllow", KubernetesToken+",test,test,system:masters\n"
	for _, user := range k.opts.Users {
		mode = "RBAC"
		users += KubernetesUserToken(user) + "," + user + "," + user + "\n"
	}
	if err := os.WriteFile(tokens, []byte(users), 0o600); err != nil {
		return err
	}
	for i, port := range ports {
		if err := k.add(k.server(i, loopback(port), key, tokens, mode)); err != nil {
			return err
		}
	}
	return nil
}

// server describes one API server.
func (k *Kubernetes) server(i int, addr, key, tokens, mode string) *Server {
	_, port, _ := net.SplitHostPort(addr) // as loopback has joined it
	return &Server{
		addr: addr,
		log:  filepath.Join(k.dir, fmt.Sprintf("log-%d", i)),
		spec: spec{
			argv: []string{
				k.binary,
				"--etcd-servers=http://" + strings.Join(k.etcd.Addrs(), ",http://"),
				"--bind-address=127.0.0.1",
				"--advertise-address=127.0.0.1",
				"--secure-port=" + port,
				"--cert-dir=" + k.certificates(i),
				"--token-auth-file=" + tokens,
				"--anonymous-auth=false",
				"--authorization-mode=" + mode,
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
	}
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
