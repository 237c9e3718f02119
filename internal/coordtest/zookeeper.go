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
	// By default it is a temporary one, which Stop removes.
	Dir string
	// Tick is ZooKeeper's tickTime, 200 ms by default, in whole milliseconds. A
	// session lasts at least two ticks, and the server ends it up to one tick late.
	Tick time.Duration
	// SyncLimit is for how many ticks a follower serves without news from its
	// leader; 10 by default.
	SyncLimit int
	// NoSync lets servers answer before a write has reached the disk.
	NoSync bool
	// Links puts a proxy between each two servers, as Isolate needs it.
	Links bool
	// Config are more lines for zoo.cfg, such as "enforce.auth.enabled=true".
	Config []string
	// JVM are more arguments for java, such as "-Dzookeeper.DigestAuthenticationProvider.superDigest=...".
	JVM []string
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
	dir     string
	links   [][]*link // links[i][j] carries what i sends to j; nil without Links
}

// StartZooKeeper starts a ZooKeeper and blocks until all of its servers serve
// clients, at most a minute. The caller stops it. opts may be nil.
func StartZooKeeper(ctx context.Context, opts *ZooKeeperOptions) (*ZooKeeper, error) {
	install, err := findZooKeeper()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, zookeeperStart)
	defer cancel()
	for attempt := 1; ; attempt++ {
		z := &ZooKeeper{opts: opts.withDefaults(), install: install}
		err := z.create()
		if err == nil {
			err = z.start(ctx)
		}
		if err == nil {
			return z, nil
		}
		z.Stop()
		if attempt == portAttempts || !errors.Is(err, errPortTaken) {
			return nil, fmt.Errorf("start ZooKeeper: %w", err)
		}
	}
}

// Stop ends all servers and blocks until they are gone; nothing is left of them but
// Dir, if the options named one. Stopping twice does no harm.
func (z *ZooKeeper) Stop() {
	z.stop()
	for _, l := range z.allLinks() {
		l.close()
	}
	if z.opts.Dir == "" && z.dir != "" {
		// What cannot be removed is left to whoever cleans the temporary folder.
		_ = os.RemoveAll(z.dir)
	}
}

// Leader returns the server that leads the ensemble, or the only server there is.
// It asks them once, and fails where none says that it leads.
func (z *ZooKeeper) Leader(ctx context.Context) (*Server, error) {
	return z.withMode(ctx, "leader", "standalone")
}

// Follower returns a server that follows the ensemble's leader; see Leader.
func (z *ZooKeeper) Follower(ctx context.Context) (*Server, error) {
	return z.withMode(ctx, "follower")
}

func (z *ZooKeeper) withMode(ctx context.Context, modes ...string) (*Server, error) {
	var seen []string
	for _, s := range z.servers {
		mode, err := serverMode(ctx, s.addr)
		if err != nil {
			mode = err.Error()
		}
		if slices.Contains(modes, mode) {
			return s, nil
		}
		seen = append(seen, s.addr+": "+mode)
	}
	return nil, fmt.Errorf("no server is %s: %s", strings.Join(modes, " or "), strings.Join(seen, "; "))
}

// create makes the folder of each server and finds its ports.
func (z *ZooKeeper) create() error {
	if z.opts.Tick%time.Millisecond != 0 || z.opts.Tick < 0 || z.opts.Nodes < 0 || z.opts.SyncLimit < 0 {
		return fmt.Errorf("impossible options %+v", z.opts)
	}
	// A folder of its own also where the options name one, as ports may take several
	// attempts.
	dir, err := os.MkdirTemp(z.opts.Dir, "zookeeper-")
	if err != nil {
		return err
	}
	z.dir = dir
	ports, err := freePorts(3 * z.opts.Nodes)
	if err != nil {
		return err
	}
	peers := make([]peer, z.opts.Nodes)
	for i := range peers {
		peers[i] = peer{client: ports[3*i], quorum: ports[3*i+1], election: ports[3*i+2]}
	}
	if z.opts.Links {
		if err := z.connect(peers); err != nil {
			return err
		}
	}
	for i := range peers {
		s, err := z.server(i, peers)
		if err != nil {
			return err
		}
		z.servers = append(z.servers, s)
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
	addr := loopback(peers[i].client)
	return &Server{
		addr: addr,
		log:  log,
		spec: spec{
			argv:      z.install.command(cfg, &z.opts),
			reset:     reset,
			probe:     func(ctx context.Context) error { return serves(ctx, addr, data) },
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
			if i != j && z.links != nil {
				p = z.links[i][j].ports()
			}
			lines = append(lines, fmt.Sprintf("server.%d=127.0.0.1:%d:%d", j+1, p.quorum, p.election))
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
