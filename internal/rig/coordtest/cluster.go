package coordtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/succession-dev/succession/conformance/proxy"
)

// A Cluster is the servers of one coordinator: a single one or an ensemble.
//
// What the servers write is in memory (/dev/shm), if there is room and TMPDIR is not set, and otherwise in the temporary folder: others that
// write to the disk meanwhile do not hold it up, and it is gone after a power loss, as the test is. With the option Disk
// it is in the temporary folder, and a write waits for the disk, as in production.
type Cluster struct {
	servers []*Server
	dir     string         // of everything that the servers write
	keep    bool           // dir stays when the servers end
	network *network       // between the servers; nil without the option Links
	fronts  []*proxy.Proxy // one for each server in a network
	below   *Cluster       // what the servers keep their data in; nil is a folder

	// leads asks a server who leads. One that only knows that it does not lead fails.
	leads func(context.Context, *Server) (*Server, error)
}

// A coordinator is a cluster of one kind.
type coordinator interface {
	create() error // folders, ports, and the description of each server
	start(context.Context) error
	Stop()
}

// starting has room for one. A server that starts needs a processor; tests that begin
// together would starve each other, and the first calls of a session would miss their bounds.
var starting = make(chan struct{}, 1)

// startCoordinator starts the coordinator that fresh makes, with other ports where
// somebody else has taken one.
func startCoordinator[C coordinator](ctx context.Context, name string, limit time.Duration, fresh func() C) (C, error) {
	select {
	case starting <- struct{}{}:
		defer func() { <-starting }()
	case <-ctx.Done():
		return *new(C), context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for attempt := 1; ; attempt++ {
		c := fresh()
		err := c.create()
		if err == nil {
			err = c.start(ctx)
		}
		if err == nil {
			return c, nil
		}
		c.Stop()
		if attempt == portAttempts || !errors.Is(err, errPortTaken) {
			var none C
			return none, fmt.Errorf("start %s: %w", name, err)
		}
	}
}

// Servers returns the servers, always in the same order.
func (c *Cluster) Servers() []*Server { return c.servers }

// Addrs returns the addresses that clients connect to, in the order of Servers.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.servers))
	for i, s := range c.servers {
		addrs[i] = s.Addr()
	}
	return addrs
}

// Leader returns the server that leads the others, or the only one there is. It asks
// the servers once, each for a second at most, and fails where none of them leads, or
// knows who does.
func (c *Cluster) Leader(ctx context.Context) (*Server, error) { return c.leader(ctx, nil) }

// leader asks all servers but one, which may be nil.
func (c *Cluster) leader(ctx context.Context, but *Server) (*Server, error) {
	var errs []error
	for _, s := range c.servers {
		if s == but {
			continue
		}
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		leader, err := c.leads(attempt, s)
		cancel()
		if err == nil {
			return leader, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", s.addr, err))
	}
	return nil, fmt.Errorf("no server leads: %w", errors.Join(errs...))
}

// LeaderAfter blocks until the others have another leader than old, which may be
// unable to answer, and returns the new one. If old is nil, any leader will do.
func (c *Cluster) LeaderAfter(ctx context.Context, old *Server) (*Server, error) {
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	for {
		s, err := c.leader(ctx, old)
		if err == nil && s != old {
			return s, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waited for a leader: %w (%w)", context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

// Kill kills all servers at about the same moment; see [Server.Kill].
func (c *Cluster) Kill() { c.each(func(s *Server) error { s.Kill(); return nil }) }

// Pause pauses all servers; see [Server.Pause].
func (c *Cluster) Pause() error { return c.each((*Server).Pause) }

// Resume resumes all servers; see [Server.Resume].
func (c *Cluster) Resume() error { return c.each((*Server).Resume) }

// Restart kills all servers, starts them with their data, and blocks until all
// serve.
func (c *Cluster) Restart(ctx context.Context) error {
	c.Kill()
	return c.start(ctx)
}

// Wipe kills all servers and starts them with empty data: the same addresses, and
// a coordinator that has forgotten everything. It blocks until all serve.
func (c *Cluster) Wipe(ctx context.Context) error {
	c.Kill()
	if err := c.each(func(s *Server) error { return s.spec.reset() }); err != nil {
		return err
	}
	return c.start(ctx)
}

// Stop ends all servers and blocks until they are gone; nothing is left of them but a
// folder that the options named. Stopping twice does no harm.
func (c *Cluster) Stop() {
	// A server that leaves in good order takes its time where the others are leaving
	// too, and the data go away in any case.
	c.Kill()
	if c.below != nil {
		c.below.Stop()
	}
	for _, p := range c.fronts {
		p.Close()
	}
	if c.network != nil {
		c.network.close()
	}
	if c.dir != "" && !c.keep {
		// What cannot be removed is left to whoever cleans the temporary folder.
		_ = os.RemoveAll(c.dir)
	}
}

// start starts all servers and blocks until all serve, or until one of them never
// will.
func (c *Cluster) start(ctx context.Context) error {
	if err := c.each((*Server).Start); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := c.each(func(s *Server) error {
		err := s.Ready(ctx)
		if err != nil {
			cancel(err)
		}
		return err
	})
	if first := context.Cause(ctx); first != nil && err != nil {
		return first // the others only gave up because of it
	}
	return err
}

// each calls f for all servers at once and joins their errors.
func (c *Cluster) each(f func(*Server) error) error {
	errs := make([]error, len(c.servers))
	var wg sync.WaitGroup
	for i, s := range c.servers {
		wg.Go(func() { errs[i] = f(s) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
