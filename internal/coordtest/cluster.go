package coordtest

import (
	"context"
	"errors"
	"sync"
)

// A Cluster is the servers of one coordinator: a single one or an ensemble.
type Cluster struct {
	servers []*Server
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

func (c *Cluster) stop() { c.each(func(s *Server) error { s.Stop(); return nil }) }

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
