//go:build linux

package arena

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/internal/rig/evidence"
)

// A Coordinator is what the candidates of a run stand in line at, and what an operator
// does to it past the elections.
type Coordinator struct {
	*coordtest.Cluster // nil for the kernel

	Name string
	TTL  time.Duration // of sessions; 0 where they have no time
	// Crash is how long the members of a process that died stand at most.
	Crash time.Duration
	// URL returns the URL for the client at index i, who sees the servers at addrs.
	URL func(i int, addrs []string) string
	// Remove deletes a member.
	Remove func(context.Context, backend.Member) error
	// End ends the session of a member; nil where nobody but its owner can.
	End func(context.Context, backend.Member) error
	// Below are the servers that keep the data, where those that clients talk to do not; or nil.
	Below *coordtest.Cluster
	// FailOver has a standby take over from the primary, and blocks until that has a standby again; nil where servers agree by
	// themselves. If beside is not nil, the old primary is only paused until the other serves, and both serve while beside runs.
	FailOver func(ctx context.Context, beside func()) error
	// Observer is a backend of this process, past all proxies. Session opens a session of it.
	Observer backend.Backend

	Busy sync.Mutex // held by the fault that the servers suffer

	guard  *guard                                         // nil where it is not secured
	rejoin func(context.Context, *coordtest.Server) error // starts a server with empty data, once an operator has made room for it
	// What follows is nil where the coordinator cannot be secured.
	secures func(context.Context, *guard) error                                          // says in the guard how, when the servers serve
	replace func(context.Context, *coordtest.Server) error                               // is ReplaceServer
	imports func(context.Context, string, func(context.Context)) (ghosts int, err error) // is Import
}

// A Starter starts a coordinator of n servers, if it can have so many. What it keeps on its own is in the folder dir, which is the
// run's. If secured is set, and it is one of those that this package can secure, it is prepared for that.
type Starter func(ctx context.Context, dir string, n int, secured bool) (*Coordinator, error)

var starters = map[string]Starter{
	"zookeeper": startZooKeeper,
	"etcd":      startEtcd,
	"consul":    startConsul,
	"local":     kernel,
}

// Register adds a coordinator whose driver is in another module. The program must link the driver. Register is for init funcs.
func Register(name string, start Starter) { starters[name] = start }

// Coordinators are the names that [Start] knows, in order.
func Coordinators() []string { return slices.Sorted(maps.Keys(starters)) }

// Start starts a coordinator of n servers by its name. What it keeps on its own is in the
// folder dir. The caller stops it.
func Start(ctx context.Context, name, dir string, n int) (*Coordinator, error) {
	return start(ctx, name, dir, n, false)
}

func start(ctx context.Context, name, dir string, n int, secured bool) (*Coordinator, error) {
	begin, ok := starters[name]
	if !ok {
		return nil, fmt.Errorf("no coordinator %q; there are %s", name, strings.Join(Coordinators(), ", "))
	}
	c, err := begin(ctx, dir, n, secured)
	if err != nil {
		return nil, err
	}
	c.Name = name
	if secured && c.secures != nil {
		if err := c.secure(ctx, dir); err != nil {
			return nil, errors.Join(fmt.Errorf("secure %s: %w", name, err), c.Stop(""))
		}
	}
	c.Remove = c.remove
	if c.Observer, err = succession.Open(c.URL(0, c.Addrs())); err == nil {
		_, err = c.Session(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.Stop(""))
	}
	return c, nil
}

// Session opens a session of the observer. It tries for a minute at most: where many runs begin at once, servers answer later than
// a client waits for them by itself.
func (c *Coordinator) Session(ctx context.Context) (s backend.Session, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err = insist(ctx, func(ctx context.Context) (err error) {
		s, err = c.Observer.Session(ctx)
		return err
	})
	return s, err
}

// try calls f by way of one server after the other, until it succeeds: some may be down.
func (c *Coordinator) try(f func(i int, addrs []string) error) error {
	if c.Cluster == nil {
		return f(0, nil)
	}
	var errs []error
	addrs := c.Addrs()
	for i := range c.Servers() {
		err := f(i, addrs)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (c *Coordinator) remove(ctx context.Context, m backend.Member) error {
	return c.try(func(i int, addrs []string) error {
		o, err := rig.NewOperator(c.URL(i, addrs))
		if err != nil {
			return err
		}
		return o.Remove(ctx, m)
	})
}

// Addrs returns the addresses at which clients reach the servers, where there are any.
func (c *Coordinator) Addrs() []string {
	switch {
	case c.Cluster == nil:
		return nil
	case c.guard == nil:
		return c.Cluster.Addrs()
	}
	addrs := make([]string, len(c.guard.fronts))
	for i, f := range c.guard.fronts {
		addrs[i] = f.addr()
	}
	return addrs
}

// ReplaceServer has another server with empty data in the place of one that it ends, as an operator does whose
// machine is lost. It blocks until the new one counts as the old one did.
func (c *Coordinator) ReplaceServer(ctx context.Context, s *coordtest.Server) error {
	return c.replace(ctx, s)
}

// Secured says whether clients need a certificate and a secret, which can be replaced. Its servers can be replaced, too, and members
// imported.
func (c *Coordinator) Secured() bool { return c.guard != nil }

// Vacancy bounds the time without a leader.
func (c *Coordinator) Vacancy() time.Duration { return c.Crash + evidence.Recovery }

// Stop stops the servers. Their logs are kept in the folder, where one is named.
func (c *Coordinator) Stop(logs string) (err error) {
	if c.Observer != nil {
		err = c.Observer.Close()
	}
	if c.Cluster == nil {
		return err
	}
	for i, s := range c.Servers() {
		if logs == "" {
			break
		}
		log, readErr := os.ReadFile(s.LogFile())
		writeErr := os.WriteFile(filepath.Join(logs, fmt.Sprintf("%s%d.log", c.Name, i+1)), log, 0o644)
		err = errors.Join(err, readErr, writeErr)
	}
	if c.guard != nil {
		for _, f := range c.guard.fronts {
			f.close()
		}
	}
	c.Cluster.Stop()
	return err
}

// Links says whether the servers can be isolated from each other, which takes root.
func Links() bool { return os.Geteuid() == 0 }

// folder is where all elections of a run are in a coordinator.
const folder = "chaos"

// kernel is the coordinator of package local.
func kernel(_ context.Context, dir string, _ int, _ bool) (*Coordinator, error) {
	return &Coordinator{
		// A process that died is gone at once, and one that is paused keeps its place.
		Crash: LongestFault(Unhurried),
		URL:   func(int, []string) string { return "local:" + filepath.Join(dir, "local") },
	}, nil
}
