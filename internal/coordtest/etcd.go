package coordtest

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// etcdStart bounds the start of one etcd; a server needs a tenth of a second on a
// machine that has nothing else to do.
const etcdStart = time.Minute

// EtcdOptions are the options of an Etcd; the zero value of each field is its
// default.
type EtcdOptions struct {
	// Nodes is the number of servers: 1 by default, 3 for a cluster that survives
	// the loss of one.
	Nodes int
	// Heartbeat is the time between heartbeats of the leader, and Election how long
	// a follower waits for them; etcd grants no lease shorter than one and a half
	// times Election. By default they are 10 ms and 50 ms for one server, and 30 ms
	// and 300 ms for several, who would otherwise depose each other on a machine
	// that is busy.
	Heartbeat, Election time.Duration
	// CertFile and KeyFile make the servers speak TLS to clients. With ClientCAFile
	// they also demand a certificate of each client; that of the servers must then
	// itself be good for a client.
	CertFile, KeyFile, ClientCAFile string
	// Args are more arguments for each server, such as "--auth-token-ttl=2".
	Args []string
}

func (o *EtcdOptions) withDefaults() EtcdOptions {
	var opts EtcdOptions
	if o != nil {
		opts = *o
	}
	if opts.Nodes == 0 {
		opts.Nodes = 1
	}
	if opts.Heartbeat == 0 {
		opts.Heartbeat, opts.Election = 10*time.Millisecond, 50*time.Millisecond
		if opts.Nodes > 1 {
			opts.Heartbeat, opts.Election = 30*time.Millisecond, 300*time.Millisecond
		}
	}
	return opts
}

// An Etcd is an etcd of one server, or a cluster. Its methods are safe for
// concurrent use. A member of a cluster cannot be wiped alone: the others would
// refuse it.
type Etcd struct {
	Cluster
	opts   EtcdOptions
	binary string
	dir    string
}

// StartEtcd starts an etcd and blocks until all of its servers serve clients; see
// [ServerBinary] for how long that takes the first time. The caller stops it. opts
// may be nil.
func StartEtcd(ctx context.Context, opts *EtcdOptions) (*Etcd, error) {
	binary, err := ServerBinary(ctx, "etcd")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, etcdStart)
	defer cancel()
	for attempt := 1; ; attempt++ {
		e := &Etcd{opts: opts.withDefaults(), binary: binary}
		err := e.create()
		if err == nil {
			err = e.start(ctx)
		}
		if err == nil {
			return e, nil
		}
		e.Stop()
		if attempt == portAttempts || !errors.Is(err, errPortTaken) {
			return nil, fmt.Errorf("start etcd: %w", err)
		}
	}
}

// NewEtcd starts an etcd for one test and stops it when the test ends; see
// [StartEtcd]. The test fails where etcd cannot be built.
func NewEtcd(t testing.TB, opts *EtcdOptions) *Etcd {
	t.Helper()
	e, err := StartEtcd(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Stop)
	showLogs(t, &e.Cluster)
	return e
}

// Stop ends all servers and blocks until they are gone; nothing is left of them.
// Stopping twice does no harm.
func (e *Etcd) Stop() {
	// A member that leaves in good order hands its leadership on first, which takes
	// long where the others are leaving too; the data go away in any case.
	e.Kill()
	if e.dir != "" {
		// What cannot be removed is left to whoever cleans the temporary folder.
		_ = os.RemoveAll(e.dir)
	}
}

// create makes the folder of each server and finds its ports.
func (e *Etcd) create() error {
	dir, err := os.MkdirTemp("", "etcd-")
	if err != nil {
		return err
	}
	e.dir = dir
	ports, err := freePorts(2 * e.opts.Nodes)
	if err != nil {
		return err
	}
	// The name tells this cluster's servers from another's that got a port first.
	unique := fmt.Sprintf("%016x", rand.Uint64())
	var initial []string
	for i := range e.opts.Nodes {
		initial = append(initial, fmt.Sprintf("%s-%d=http://%s", unique, i+1, loopback(ports[2*i+1])))
	}
	for i := range e.opts.Nodes {
		s, err := e.server(fmt.Sprintf("%s-%d", unique, i+1), ports[2*i], ports[2*i+1], strings.Join(initial, ","))
		if err != nil {
			return err
		}
		e.servers = append(e.servers, s)
	}
	return nil
}

// server describes one server.
func (e *Etcd) server(name string, clientPort, peerPort int, initial string) (*Server, error) {
	dir := filepath.Join(e.dir, name)
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	addr := loopback(clientPort)
	client, peer := e.scheme()+addr, "http://"+loopback(peerPort)
	argv := []string{
		e.binary,
		"--name=" + name,
		"--data-dir=" + data,
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + initial,
		"--initial-cluster-token=" + name[:16],
		"--heartbeat-interval=" + strconv.FormatInt(e.opts.Heartbeat.Milliseconds(), 10),
		"--election-timeout=" + strconv.FormatInt(e.opts.Election.Milliseconds(), 10),
		"--unsafe-no-fsync", // a test machine that loses power loses its tests too
		"--log-level=warn",
	}
	if e.opts.CertFile != "" {
		argv = append(argv, "--cert-file="+e.opts.CertFile, "--key-file="+e.opts.KeyFile)
	}
	if e.opts.ClientCAFile != "" {
		argv = append(argv, "--client-cert-auth", "--trusted-ca-file="+e.opts.ClientCAFile)
	}
	return &Server{
		addr: addr,
		log:  filepath.Join(dir, "log"),
		spec: spec{
			argv:      append(argv, e.opts.Args...),
			reset:     func() error { return os.RemoveAll(data) },
			probe:     func(ctx context.Context) error { return e.serves(ctx, client, name) },
			portTaken: "address already in use",
		},
	}, nil
}

func (e *Etcd) scheme() string {
	if e.opts.CertFile != "" {
		return "https://"
	}
	return "http://"
}

// serves returns nil when the server at the URL has a quorum and belongs to the
// cluster of the given member.
func (e *Etcd) serves(ctx context.Context, url, name string) error {
	transport := &http.Transport{DisableKeepAlives: true}
	if e.opts.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(e.opts.CertFile, e.opts.KeyFile)
		if err != nil {
			return err
		}
		transport.TLSClientConfig = &tls.Config{
			InsecureSkipVerify: true, // the name in the answer says who it is
			Certificates:       []tls.Certificate{cert},
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v3/cluster/member/list", strings.NewReader(`{"linearizable":true}`))
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case bytes.Contains(body, []byte("user name is empty")):
		return nil // it has a quorum, and somebody has turned on authentication
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s", resp.Status, body)
	case !bytes.Contains(body, []byte(name)):
		return fmt.Errorf("%w: another server answers at %s", errPortTaken, url)
	}
	return nil
}
