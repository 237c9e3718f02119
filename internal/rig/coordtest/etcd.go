package coordtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
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
	// Links gives each server a network of its own, as Isolate needs it; see
	// [Cluster.Isolate].
	Links bool
	// Disk keeps the data on the disk, and has writes wait for it; see [Cluster].
	Disk bool
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
	asker  asker
}

// StartEtcd starts an etcd and blocks until all of its servers serve clients; see
// [ServerBinary] for how long that takes the first time. The caller stops it. opts
// may be nil.
func StartEtcd(ctx context.Context, opts *EtcdOptions) (*Etcd, error) {
	binary, err := ServerBinary(ctx, "etcd")
	if err != nil {
		return nil, err
	}
	o := opts.withDefaults()
	return startCoordinator(ctx, "etcd", etcdStart, func() *Etcd {
		return &Etcd{opts: o, binary: binary, asker: asker{certFile: o.CertFile, keyFile: o.KeyFile}}
	})
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

// create makes the folder of each server and finds its ports.
func (e *Etcd) create() (err error) {
	e.leads = e.leadsBy
	if err := e.makeFolder("etcd-", e.opts.Disk, ""); err != nil {
		return err
	}
	if err := e.connect(e.opts.Links, e.opts.Nodes); err != nil {
		return err
	}
	ports, err := freePorts(2 * e.opts.Nodes)
	if err != nil {
		return err
	}
	// The name tells this cluster's servers from another's that got a port first.
	unique := fmt.Sprintf("%016x", rand.Uint64())
	var initial []string
	for i := range e.opts.Nodes {
		initial = append(initial, fmt.Sprintf("%s-%d=http://%s", unique, i+1, e.peerAddr(i, ports[2*i+1])))
	}
	for i := range e.opts.Nodes {
		s, err := e.server(fmt.Sprintf("%s-%d", unique, i+1), loopback(ports[2*i]), e.peerAddr(i, ports[2*i+1]), strings.Join(initial, ","))
		if err != nil {
			return err
		}
		if err := e.add(s); err != nil {
			return err
		}
	}
	return nil
}

// server describes one server that has the address for clients and that for the other
// servers.
func (e *Etcd) server(name, addr, peerAddr, initial string) (*Server, error) {
	dir := filepath.Join(e.dir, name)
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	client, peer := "http://"+addr, "http://"+peerAddr
	if e.opts.CertFile != "" {
		client = "https://" + addr
	}
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
		"--unsafe-no-fsync=" + strconv.FormatBool(!e.opts.Disk),
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
			data:      data,
			reset:     func() error { return os.RemoveAll(data) },
			probe:     func(ctx context.Context, addr string) error { return e.serves(ctx, addr, name) },
			portTaken: "address already in use",
		},
	}, nil
}

// serves returns nil when the server at addr has a quorum and belongs to the cluster
// of the given member.
func (e *Etcd) serves(ctx context.Context, addr, name string) error {
	status, answer, err := e.asker.ask(ctx, http.MethodPost, addr, "/v3/cluster/member/list", `{"linearizable":true}`)
	switch {
	case err != nil:
		return err
	case strings.Contains(answer, "user name is empty"):
		return nil // it has a quorum, and somebody has turned on authentication
	case status != http.StatusOK:
		return fmt.Errorf("status %d: %s", status, answer)
	case !strings.Contains(answer, name):
		return fmt.Errorf("%w: another server answers at %s", errPortTaken, addr)
	}
	return nil
}

// leadsBy returns s if it says that it leads, which it tells everybody, also with authentication.
func (e *Etcd) leadsBy(ctx context.Context, s *Server) (*Server, error) {
	status, answer, err := e.asker.ask(ctx, http.MethodGet, s.addr, "/metrics", "")
	switch {
	case err != nil:
		return nil, err
	case status != http.StatusOK:
		return nil, fmt.Errorf("status %d: %s", status, answer)
	case !strings.Contains(answer, "\netcd_server_is_leader 1\n"):
		return nil, errors.New("it does not lead")
	}
	return s, nil
}

// Rejoin starts a server with empty data, as another member than it was: an operator has removed that one, and has
// added one with its address. It blocks until the server serves.
func (e *Etcd) Rejoin(ctx context.Context, s *Server) error {
	const existing = "--initial-cluster-state=existing"
	s.mu.Lock()
	if !slices.Contains(s.spec.argv, existing) {
		s.spec.argv = append(s.spec.argv, existing)
	}
	s.mu.Unlock()
	return s.Wipe(ctx)
}
