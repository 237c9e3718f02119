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

// consulStart bounds the start of one Consul. On a machine that has nothing else to
// do, a server in memory needs a third of a second, others two seconds.
const consulStart = time.Minute

// ConsulOptions are the options of a Consul; the zero value of each field is its
// default.
type ConsulOptions struct {
	// Nodes is the number of servers: 1 by default, 3 for a cluster that survives
	// the loss of one.
	Nodes int
	// Durable has a single server write its data to files, so that they survive a
	// restart. By default its process keeps them, which starts five times as fast;
	// a restart is then what Wipe is for the others. Several servers are always
	// durable.
	Durable bool
	// Disk keeps the files on the disk, and has writes wait for it; see [Cluster].
	Disk bool
	// MinTTL is the shortest TTL of a session that servers grant (session_ttl_min);
	// 100 ms by default. In production it is 10 s.
	MinTTL time.Duration
	// CertFile and KeyFile make the servers speak TLS to clients, and nothing else.
	// With ClientCAFile they also demand a certificate of each client.
	CertFile, KeyFile, ClientCAFile string
	// Links gives each server a network of its own, as Isolate needs it; see
	// [Cluster.Isolate]. The servers then take their time before they declare one of
	// them failed, fifteen seconds, as they look for a failed one every half a minute
	// only; and autopilot removes none.
	Links bool
	// Config are more settings in HCL, such as `limits{http_max_conns_per_client=4000}`.
	Config []string
}

func (o *ConsulOptions) withDefaults() ConsulOptions {
	var opts ConsulOptions
	if o != nil {
		opts = *o
	}
	if opts.Nodes == 0 {
		opts.Nodes = 1
	}
	if opts.MinTTL == 0 {
		opts.MinTTL = 100 * time.Millisecond
	}
	return opts
}

// A Consul is a Consul of one server, or a cluster of servers. Its methods are safe
// for concurrent use.
//
// Consul's autopilot removes a server that has failed, within seconds and as long
// as a majority is left, and a server that comes back votes only after ten seconds:
// who kills servers one after the other loses the quorum for good, unless Config has
// `autopilot{cleanup_dead_servers=false}`, or Links is set.
type Consul struct {
	Cluster
	opts   ConsulOptions
	binary string
	asker  asker
	rafts  []string // host:port of each server for the others
	names  []string
}

// StartConsul starts a Consul and blocks until all of its servers serve clients; see
// [ServerBinary] for how long that takes the first time. The caller stops it. opts
// may be nil.
func StartConsul(ctx context.Context, opts *ConsulOptions) (*Consul, error) {
	binary, err := ServerBinary(ctx, "consul")
	if err != nil {
		return nil, err
	}
	o := opts.withDefaults()
	return startCoordinator(ctx, "Consul", consulStart, func() *Consul {
		return &Consul{opts: o, binary: binary, asker: asker{certFile: o.CertFile, keyFile: o.KeyFile}}
	})
}

// NewConsul starts a Consul for one test and stops it when the test ends; see
// [StartConsul]. The test fails where Consul cannot be built.
func NewConsul(t testing.TB, opts *ConsulOptions) *Consul {
	t.Helper()
	c, err := StartConsul(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	showLogs(t, &c.Cluster)
	return c
}

// Nodes returns the names of the servers in Consul's catalog, in the order of
// Servers.
func (c *Consul) Nodes() []string { return c.names }

// create makes the folder of each server and finds its ports.
func (c *Consul) create() (err error) {
	c.leads = c.leadsBy
	if err := c.makeFolder("consul-", c.opts.Disk, ""); err != nil {
		return err
	}
	if err := c.connect(c.opts.Links, c.opts.Nodes); err != nil {
		return err
	}
	ports, err := freePorts(3 * c.opts.Nodes)
	if err != nil {
		return err
	}
	unique := fmt.Sprintf("%08x", rand.Uint32())
	var join []string
	for i := range c.opts.Nodes {
		c.names = append(c.names, fmt.Sprintf("server-%s-%d", unique, i+1))
		c.rafts = append(c.rafts, c.peerAddr(i, ports[3*i+1]))
		join = append(join, "-retry-join="+c.peerAddr(i, ports[3*i+2]))
	}
	for i := range c.opts.Nodes {
		s, err := c.server(i, ports[3*i:3*i+3], join)
		if err != nil {
			return err
		}
		if err := c.add(s); err != nil {
			return err
		}
	}
	return nil
}

// server describes server i; ports are those for clients, raft and gossip.
func (c *Consul) server(i int, ports []int, join []string) (*Server, error) {
	name := c.names[i]
	dir := filepath.Join(c.dir, name)
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	argv := []string{
		c.binary, "agent",
		"-node=" + name,
		"-bind=" + c.peerHost(i),
		"-client=127.0.0.1",
		"-server-port=" + strconv.Itoa(ports[1]),
		"-serf-lan-port=" + strconv.Itoa(ports[2]),
		"-serf-wan-port=-1",
		"-dns-port=-1",
		"-grpc-port=-1",
		"-grpc-tls-port=-1",
		"-log-level=warn",
		"-hcl=disable_update_check=true",
		"-hcl=connect{enabled=false}",
		"-hcl=peering{enabled=false}",
		"-hcl=ui_config{enabled=false}",
		"-hcl=session_ttl_min=" + strconv.Quote(c.opts.MinTTL.String()),
	}
	if c.opts.CertFile == "" {
		argv = append(argv, "-http-port="+strconv.Itoa(ports[0]))
	} else {
		argv = append(argv, "-http-port=-1", "-https-port="+strconv.Itoa(ports[0]), fmt.Sprintf(
			"-hcl=tls{https{cert_file=%q key_file=%q ca_file=%q verify_incoming=%t}}",
			c.opts.CertFile, c.opts.KeyFile, c.opts.ClientCAFile, c.opts.ClientCAFile != ""))
	}
	switch {
	case c.opts.Nodes > 1:
		argv = append(argv, join...)
		argv = append(argv, "-retry-interval=1s",
			`-hcl=gossip_lan{gossip_interval="100ms" probe_interval="500ms" probe_timeout="250ms" suspicion_mult=3}`)
		if c.opts.Links {
			argv = append(argv, "-hcl=gossip_lan{suspicion_mult=30}", "-hcl=autopilot{cleanup_dead_servers=false}")
		}
		fallthrough
	case c.opts.Durable:
		argv = append(argv, "-server", "-bootstrap-expect="+strconv.Itoa(c.opts.Nodes), "-data-dir="+data,
			"-hcl=performance{raft_multiplier=1}")
	default:
		argv = append(argv, "-dev")
	}
	for _, more := range c.opts.Config {
		argv = append(argv, "-hcl="+more)
	}
	return &Server{
		addr: loopback(ports[0]),
		log:  filepath.Join(dir, "log"),
		spec: spec{
			argv:      argv,
			data:      data,
			reset:     func() error { return os.RemoveAll(data) },
			probe:     c.serves,
			portTaken: "address already in use",
		},
	}, nil
}

// Rejoin starts a server with empty data, as another node than it was: an operator has removed that one from the peers. It
// blocks until the server serves, which is before it votes. Nodes goes on to return the name of the first one.
func (c *Consul) Rejoin(ctx context.Context, s *Server) error {
	s.mu.Lock()
	i := slices.IndexFunc(s.spec.argv, func(arg string) bool { return strings.HasPrefix(arg, "-node=") })
	s.spec.argv[i] = fmt.Sprintf("-node=server-%08x", rand.Uint32())
	s.mu.Unlock()
	return s.Wipe(ctx)
}

// serves returns nil when the server at addr has a quorum, and belongs to this
// cluster: another's server may have got the port.
func (c *Consul) serves(ctx context.Context, addr string) error {
	leader, err := c.raftLeader(ctx, addr)
	switch {
	case err != nil:
		return err
	case leader == "":
		return errors.New("it knows no leader")
	case !slices.Contains(c.rafts, leader):
		return fmt.Errorf("%w: another server answers at %s", errPortTaken, addr)
	}
	status, body, err := c.asker.ask(ctx, http.MethodGet, addr, "/v1/kv/"+c.names[0]+"?consistent", "")
	if err == nil && status != http.StatusNotFound && status != http.StatusForbidden {
		err = fmt.Errorf("status %d: %s", status, body)
	}
	return err
}

// leadsBy returns whom s takes for the leader.
func (c *Consul) leadsBy(ctx context.Context, s *Server) (*Server, error) {
	addr, err := c.raftLeader(ctx, s.addr)
	if err != nil {
		return nil, err
	}
	if i := slices.Index(c.rafts, addr); i >= 0 {
		return c.servers[i], nil
	}
	return nil, fmt.Errorf("it says that %q leads", addr)
}

// raftLeader returns the raft address of whom the server at addr takes for the leader;
// empty where it knows none.
func (c *Consul) raftLeader(ctx context.Context, addr string) (string, error) {
	status, body, err := c.asker.ask(ctx, http.MethodGet, addr, "/v1/status/leader", "")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d: %s", status, body)
	}
	return strings.Trim(strings.TrimSpace(body), `"`), err
}
