package coordtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// zookeeperStart bounds the start of one coordinator. A server needs half a
	// second on a machine that has nothing else to do.
	zookeeperStart = time.Minute
	// portAttempts is how often a start is tried with other ports.
	portAttempts = 5
)

// ZooKeeperOptions are the options of a ZooKeeper; the zero value of each field is
// its default.
type ZooKeeperOptions struct {
	// Nodes is the number of servers: 1 by default, 3 for an ensemble that
	// survives the loss of one.
	Nodes int
	// Dir is an existing folder for configuration, data and logs, which stays.
	// By default there is a new one, which Stop removes.
	Dir string
	// Tick is ZooKeeper's tickTime, 200 ms by default, in whole milliseconds. A
	// session lasts at least two ticks, and the server ends it up to one tick late.
	Tick time.Duration
	// SyncLimit is for how many ticks a follower serves without news from its
	// leader; 10 by default.
	SyncLimit int
	// Disk keeps the data on the disk, and has writes wait for it; see [Cluster].
	Disk bool
	// Links gives each server a network of its own, as Isolate needs it; see
	// [Cluster.Isolate].
	Links bool
	// Clock lets SetClock set the wall clock of the servers, which takes a C compiler.
	Clock bool
	// Config are more lines for zoo.cfg, such as "enforce.auth.enabled=true".
	Config []string
	// JVM are more arguments for java, such as "-Dzookeeper.DigestAuthenticationProvider.superDigest=...".
	JVM []string

	archive string // see classArchive
}

func (o *ZooKeeperOptions) withDefaults() ZooKeeperOptions {
	var opts ZooKeeperOptions
	if o != nil {
		opts = *o
	}
	if opts.Nodes == 0 {
		opts.Nodes = 1
	}
	if opts.Tick == 0 {
		opts.Tick = 200 * time.Millisecond
	}
	if opts.SyncLimit == 0 {
		opts.SyncLimit = 10
	}
	return opts
}

// A ZooKeeper is a ZooKeeper of one server, or an ensemble. Its methods are safe
// for concurrent use.
type ZooKeeper struct {
	Cluster
	opts    ZooKeeperOptions
	install *zookeeperInstall
}

// StartZooKeeper starts a ZooKeeper and blocks until all of its servers serve
// clients, at most a minute. The caller stops it. opts may be nil.
func StartZooKeeper(ctx context.Context, opts *ZooKeeperOptions) (*ZooKeeper, error) {
	install, err := findZooKeeper()
	if err != nil {
		return nil, err
	}
	o := opts.withDefaults()
	if !slices.ContainsFunc(o.JVM, func(arg string) bool { return strings.HasPrefix(arg, "-Xbootclasspath") }) {
		o.archive = classArchive() // which is of no use to those with other classes
	}
	return startCoordinator(ctx, "ZooKeeper", zookeeperStart, func() *ZooKeeper {
		return &ZooKeeper{opts: o, install: install}
	})
}

// Follower returns a server that follows the ensemble's leader; see Leader.
func (z *ZooKeeper) Follower(ctx context.Context) (*Server, error) {
	var errs []error
	for _, s := range z.servers {
		err := isMode(ctx, s, "follower")
		if err == nil {
			return s, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("no server follows: %w", errors.Join(errs...))
}

// leadsBy returns s if it says that it leads.
func (z *ZooKeeper) leadsBy(ctx context.Context, s *Server) (*Server, error) {
	if err := isMode(ctx, s, "leader", "standalone"); err != nil {
		return nil, err
	}
	return s, nil
}

// isMode returns nil if the server plays one of the parts.
func isMode(ctx context.Context, s *Server, parts ...string) error {
	mode, err := serverMode(ctx, s.addr)
	if err == nil && !slices.Contains(parts, mode) {
		err = fmt.Errorf("server %s: it is %s", s.addr, mode)
	}
	return err
}

// create makes the folder of each server and finds its ports.
func (z *ZooKeeper) create() error {
	if z.opts.Tick%time.Millisecond != 0 || z.opts.Tick < 0 || z.opts.Nodes < 0 || z.opts.SyncLimit < 0 {
		return fmt.Errorf("impossible options %+v", z.opts)
	}
	z.leads = z.leadsBy
	// A folder of its own also where the options name one, as ports may take several
	// attempts.
	if err := z.makeFolder("zookeeper-", z.opts.Disk, z.opts.Dir); err != nil {
		return err
	}
	if err := z.connect(z.opts.Links, z.opts.Nodes); err != nil {
		return err
	}
	ports, err := freePorts(3 * z.opts.Nodes)
	if err != nil {
		return err
	}
	peers := make([]peer, z.opts.Nodes)
	for i := range peers {
		peers[i] = peer{client: ports[3*i], quorum: ports[3*i+1], election: ports[3*i+2]}
	}
	for i := range peers {
		s, err := z.server(i, peers)
		if err != nil {
			return err
		}
		if err := z.add(s); err != nil {
			return err
		}
	}
	return nil
}

// A peer is the ports of one server.
type peer struct{ client, quorum, election int }

// server writes the configuration of server i.
func (z *ZooKeeper) server(i int, peers []peer) (*Server, error) {
	dir := filepath.Join(z.dir, "server"+strconv.Itoa(i+1))
	data := filepath.Join(dir, "data")
	cfg := filepath.Join(dir, "zoo.cfg")
	log := filepath.Join(dir, "log")

	reset := func() error {
		if err := os.RemoveAll(data); err != nil {
			return err
		}
		if err := os.MkdirAll(data, 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(data, "myid"), []byte(strconv.Itoa(i+1)+"\n"), 0o644)
	}
	if err := reset(); err != nil {
		return nil, err
	}
	if err := os.WriteFile(cfg, []byte(z.config(i, peers, data)), 0o644); err != nil {
		return nil, err
	}
	argv, err := z.withClock(z.install.command(cfg, &z.opts))
	if err != nil {
		return nil, err
	}
	return &Server{
		addr: loopback(peers[i].client),
		log:  log,
		spec: spec{
			argv:      argv,
			data:      data,
			reset:     reset,
			probe:     func(ctx context.Context, addr string) error { return serves(ctx, addr, data) },
			portTaken: "java.net.BindException: Address already in use",
		},
	}, nil
}

// config returns the text of zoo.cfg for server i.
func (z *ZooKeeper) config(i int, peers []peer, data string) string {
	lines := []string{
		"dataDir=" + data,
		"clientPortAddress=127.0.0.1",
		"clientPort=" + strconv.Itoa(peers[i].client),
		"tickTime=" + strconv.FormatInt(z.opts.Tick.Milliseconds(), 10),
		"minSessionTimeout=" + strconv.FormatInt(2*z.opts.Tick.Milliseconds(), 10),
		"maxSessionTimeout=600000",
		"maxClientCnxns=0", // no limit
		"initLimit=50",
		"syncLimit=" + strconv.Itoa(z.opts.SyncLimit),
		"admin.enableServer=false",
		"4lw.commands.whitelist=*",
	}
	if len(peers) > 1 {
		for j, p := range peers {
			lines = append(lines, fmt.Sprintf("server.%d=%s:%d:%d", j+1, z.peerHost(j), p.quorum, p.election))
		}
	}
	return strings.Join(append(lines, z.opts.Config...), "\n") + "\n"
}

// serves returns nil when the server at addr serves clients and is the one whose
// data are in the given folder: another's server may have got the port.
func serves(ctx context.Context, addr, data string) error {
	if _, err := serverMode(ctx, addr); err != nil {
		return err
	}
	conf, err := FourLetter(ctx, addr, "conf")
	if err != nil {
		return err
	}
	if !strings.Contains(conf, "dataDir="+data+"/") {
		return fmt.Errorf("%w: another server answers at %s", errPortTaken, addr)
	}
	return nil
}

// serverMode returns the part that a server plays: "standalone", "leader",
// "follower".
func serverMode(ctx context.Context, addr string) (string, error) {
	text, err := FourLetter(ctx, addr, "srvr")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(text) {
		if mode, ok := strings.CutPrefix(line, "Mode: "); ok {
			return strings.TrimSpace(mode), nil
		}
	}
	return "", fmt.Errorf("server %s: %s", addr, strings.TrimSpace(text))
}
