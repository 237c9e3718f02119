package candidate

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// The coordinators.
const (
	Etcd       = "etcd"
	Consul     = "consul"
	ZooKeeper  = "zookeeper"
	Local      = "local"
	Kubernetes = "kubernetes"
	Postgres   = "postgres"
	Redis      = "redis" // of others alone: this project has no elections there
)

// Coordinators are those with elections of this project, in the order in which they are measured and shown.
var Coordinators = []string{Etcd, Consul, ZooKeeper, Postgres, Local, Kubernetes}

// Titles are the coordinators' names for people.
var Titles = map[string]string{
	Etcd: "etcd", Consul: "Consul", ZooKeeper: "ZooKeeper", Postgres: "PostgreSQL", Local: "local", Kubernetes: "Kubernetes", Redis: "Redis",
}

// Ours is the name of this project in the tables.
const Ours = "succession"

// A Library elects on one kind of coordinator.
type Library struct {
	Coordinator string
	Name        string
	Module      string // whose version counts; empty is this project, or a peer
	Copied      string // the version that this is written after, where it is no code of the library
	Asks        string // what its leader asks before each act

	// Connect connects a process of the program that calls Main. Nil where Program or Peer is
	// set: the first is the path of a program of the library's own, which may take a while to
	// build, and the second the kind of a peer of coordtest.
	Connect Connect
	Program func() (string, error)
	Peer    string

	CostsOnly  bool // it is measured by what it costs, and not under faults
	FaultsOnly bool // and the other way round
	Herd       bool // each handover wakes all who wait
	Unseen     bool // nobody can tell who stands in its line
	Most       int  // how long a line of it may be here; 0 is no limit

	// Session is the session's time for its handovers, where these depend on it. 0 is any.
	Session time.Duration
}

// ID is what the programs' flag -library is matched with.
func (l Library) ID() string { return l.Coordinator + ": " + l.Name }

const (
	check = "Term.Check() == nil"

	concurrencyModule = "go.etcd.io/etcd/client/v3"
	consulModule      = "github.com/hashicorp/consul/api"
	zkModule          = "github.com/go-zookeeper/zk"
	clientGoModule    = "k8s.io/client-go"
	pgxModule         = "github.com/jackc/pgx/v5"
	redsyncModule     = "github.com/go-redsync/redsync/v4"

	leadingContext = "the context that OnStartedLeading got is not done"
	lockChannel    = "the channel that Lock returned is not closed"
)

// clientGo is a program of its own, so that whoever measures no Kubernetes does not compile
// client-go. This project's driver for Kubernetes is in it, too, as it needs that.
var clientGo = sync.OnceValues(func() (string, error) {
	return coordtest.Program(context.Background(), "bench/clientgo")
})

// The names of client-go's election with settings other than its defaults: those who resign release the Lease, as its
// documentation advises; and as in the program that comes with it as an example, whose requests have no timeout besides.
const (
	Releases  = "client-go leaderelection (ReleaseOnCancel)"
	NoTimeout = "client-go leaderelection (no timeout)"
)

// AsClientGo is the name of this project's election where it holds the Lease of client-go's candidates, too.
const AsClientGo = "succession (as=client-go)"

// AsCommand is the name of Consul's lock with the settings that its own command, consul lock, has.
const AsCommand = "api.Lock (as consul lock)"

// Libraries are all that are measured. Each waiter is a lease with package concurrency, of which ten
// thousand keep etcd from answering anybody, a connection on Consul, a list of all names for each that
// joins with zk.Lock, a thread in Curator's mutex and in kazoo, and a process of the server with advisory locks, and looks from time to
// time with client-go, with River and with a lock that is polled: hence the limits.
var Libraries = []Library{
	{Coordinator: Etcd, Name: Ours, Connect: succession, Asks: check},
	{Coordinator: Etcd, Name: "concurrency.Election", Connect: concurrencyElection, Module: concurrencyModule, Asks: "Session.Done is not closed", Most: 1000},
	{Coordinator: Etcd, Name: "succession, Mutex", Connect: successionMutex, CostsOnly: true},
	{Coordinator: Etcd, Name: "concurrency.Mutex", Connect: concurrencyMutex, Module: concurrencyModule, CostsOnly: true, Most: 1000},
	{Coordinator: Consul, Name: Ours, Connect: succession, Asks: check, Most: 1000},
	{Coordinator: Consul, Name: "api.Lock", Connect: consulLock, Module: consulModule, Asks: lockChannel, Herd: true, Most: 1000},
	{Coordinator: Consul, Name: AsCommand, Connect: consulLock, Module: consulModule, Asks: lockChannel, Herd: true, Most: 1},
	{Coordinator: Consul, Name: "succession, Mutex", Connect: successionMutex, CostsOnly: true, Most: 1000},
	{Coordinator: ZooKeeper, Name: Ours, Connect: succession, Asks: check},
	{Coordinator: ZooKeeper, Name: "Curator LeaderLatch", Peer: coordtest.PeerCuratorLatch, Asks: "hasLeadership() is true", Most: 1000},
	{Coordinator: ZooKeeper, Name: "Curator LeaderSelector", Peer: coordtest.PeerCuratorSelector, Asks: "its thread is not interrupted, which LeaderSelectorListenerAdapter does", Most: 1},
	{Coordinator: ZooKeeper, Name: "kazoo Election", Peer: coordtest.PeerKazoo, Asks: "a flag is up, which a listener of the connection takes down on SUSPENDED and LOST", Most: 100},
	{Coordinator: ZooKeeper, Name: "zk.Lock", Connect: zkLockExpired, Module: zkModule, Asks: "a flag is up, which the connection's StateExpired takes down; the lock itself never tells", Most: 1000},
	{Coordinator: ZooKeeper, Name: "zk.Lock (on disconnect)", Connect: zkLockDisconnected, Module: zkModule, Asks: "a flag is up, which the connection's StateDisconnected takes down; the lock itself never tells", Most: 1},
	{Coordinator: ZooKeeper, Name: "succession, Mutex", Connect: successionMutex, CostsOnly: true},
	{Coordinator: ZooKeeper, Name: "Curator InterProcessMutex", Peer: coordtest.PeerCuratorMutex, CostsOnly: true, Most: 100},
	{Coordinator: Postgres, Name: Ours, Connect: succession, Asks: check, Most: 1000},
	{Coordinator: Postgres, Name: "succession, Mutex", Connect: successionMutex, CostsOnly: true, Most: 1000},
	{Coordinator: Postgres, Name: "pg_advisory_lock, pgx", Connect: advisoryLock, Module: pgxModule, Asks: "nothing: the lock never tells", Most: 1000},
	{Coordinator: Postgres, Name: "pg_advisory_lock (pinged), pgx", Connect: advisoryPinged, Module: pgxModule, Asks: "a flag is up, which a ping over the lock's connection takes down that has no answer in a quarter of the session's time", Most: 1},
	{Coordinator: Postgres, Name: "pg_try_advisory_lock (pool), pgx", Connect: advisoryPolled, Module: pgxModule, Asks: "a flag is up, which is taken down where the pool's connection does not have the lock, or has not said so in a second", Unseen: true, Most: 100},
	{Coordinator: Postgres, Name: "River's elector", Connect: riverElector, Copied: riverVersion, Asks: "its elector has not published that it leads no more", Unseen: true, Most: 100, Session: 15 * time.Second},
	{Coordinator: Local, Name: Ours, Connect: succession, CostsOnly: true, Most: 1000},
	{Coordinator: Kubernetes, Name: Ours, Program: clientGo, Asks: check, Most: 1000},
	{Coordinator: Kubernetes, Name: AsClientGo, Program: clientGo, Asks: check, Most: 1000},
	{Coordinator: Kubernetes, Name: "client-go leaderelection", Program: clientGo, Module: clientGoModule, Asks: leadingContext, Unseen: true, Most: 1},
	{Coordinator: Kubernetes, Name: Releases, Program: clientGo, Module: clientGoModule, Asks: leadingContext, Unseen: true, Most: 100, Session: 15 * time.Second},
	{Coordinator: Kubernetes, Name: NoTimeout, Program: clientGo, Module: clientGoModule, Asks: leadingContext, Unseen: true, Most: 1},
	{Coordinator: Redis, Name: "redsync", Connect: redsyncMutex, Module: redsyncModule, Asks: "the time that Until has returned has not come, and Extend has not returned ErrTaken", FaultsOnly: true},
}

// An optional is a coordinator that may be missing as a whole.
type optional struct {
	coordinator string
	there       func() bool // its server
	get         string      // how to get that
}

// optionals: the server of Kubernetes takes minutes to build, and Redis is no coordinator of this project, so that its tests do without.
var optionals = []optional{
	{Kubernetes, func() bool { return coordtest.ServerBuilt(apiServer) }, "go run ./internal/rig/coordtest/cmd/servers " + apiServer},
	{Redis, func() bool { _, err := coordtest.RedisProgram(); return err == nil }, "apt-get install redis-server"},
}

const apiServer = "kube-apiserver"

// Optional reports whether the coordinator may be missing as a whole.
func Optional(coordinator string) bool {
	return slices.ContainsFunc(optionals, func(o optional) bool { return o.coordinator == coordinator })
}

// Choose returns the libraries in whose ID the regular expression which, a flag -library, matches.
// If it is empty these are all but those of optional coordinators whose server is not there, and progress says so.
func Choose(which string, progress io.Writer) (chosen []Library, err error) {
	re, err := regexp.Compile(which)
	if err != nil {
		return nil, fmt.Errorf("-library: %w", err)
	}
	lacks := make(map[string]bool)
	for _, o := range optionals {
		if which == "" && !o.there() {
			lacks[o.coordinator] = true
			fmt.Fprintf(progress, "%s: left out; to measure it too, run first: %s\n", Titles[o.coordinator], o.get)
		}
	}
	for _, l := range Libraries {
		if re.MatchString(l.ID()) && !lacks[l.Coordinator] {
			chosen = append(chosen, l)
		}
	}
	return chosen, nil
}

// Settings are what the process of a candidate needs to know.
type Settings struct {
	Library   Library
	Addresses []string // of the coordinator's servers, or the folder of local
	Election  string
	ID        string
	Session   time.Duration
	Idle      bool // whoever leads does not ask whether it still does; not for peers
}

const command = "candidate"

// arguments are those of the candidate's process, without the program.
func (s Settings) arguments() []string {
	return []string{command, s.Library.ID(), strings.Join(s.Addresses, ","), s.Election, s.ID,
		strconv.FormatInt(s.Session.Milliseconds(), 10), strconv.FormatBool(s.Idle)}
}

// Start starts the process of a candidate, and does not wait for it to be ready. What it says goes
// to events, and its log into the folder dir. The caller kills it.
func Start(s Settings, events chan<- coordtest.PeerEvent, dir string) (*coordtest.Peer, error) {
	o := coordtest.PeerOptions{
		Kind:    s.Library.Peer,
		Address: strings.Join(s.Addresses, ","),
		Path:    "/" + s.Election,
		ID:      s.ID,
		Session: s.Session,
		Events:  events,
		Dir:     dir,
	}
	if s.Library.Peer != "" {
		return coordtest.StartPeer(o)
	}
	program := s.Library.Program
	if program == nil {
		program = os.Executable
	}
	path, err := program()
	if err != nil {
		return nil, err
	}
	return coordtest.StartPeerProcess(o, append([]string{path}, s.arguments()...))
}
