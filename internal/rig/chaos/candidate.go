//go:build linux

package chaos

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/chaos/worker"
)

// A candidate is one worker after the other under one name, behind its own proxies.
type candidate struct {
	a       *arena
	id      string
	url     string
	proxies []*proxy.Proxy // in front of the servers; none where there are none
	via     [][2]string    // see [worker.Config]; nil where the URL names the proxies

	busy sync.Mutex // held by the fault that the candidate suffers

	mu   sync.Mutex
	runs int
	proc *process // nil before the first start
}

// start starts the next worker.
func (c *candidate) start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs++
	o := c.a.o
	log := filepath.Join(o.Dir, fmt.Sprintf("%s.%d", c.id, c.runs))
	cfg := worker.Config{
		URL: c.url, Via: c.via, ID: c.id, Elections: c.a.elections, Store: filepath.Join(o.Dir, "store"), Log: log,
		Origin: c.a.origin, Pace: pace, Work: work, Heedless: o.Heedless,
	}
	p, err := startProcess(append(o.Worker[:len(o.Worker):len(o.Worker)], cfg.Args()...), o.Env, log+".log", c.a.live.hear)
	if err != nil {
		return err
	}
	c.proc = p
	return nil
}

// process returns the present worker.
func (c *candidate) process() *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.proc
}

// crash kills the worker, and notes that it has left. Its last acts say until when it led.
func (c *candidate) crash() {
	c.process().kill()
	c.left("killed")
}

// retire ends the worker in good order, and notes that it has left.
func (c *candidate) retire() error {
	if err := c.process().quit(quitLimit); err != nil {
		var status interface{ ExitCode() int }
		if !errors.As(err, &status) || status.ExitCode() != exitUnclosed {
			return fmt.Errorf("%s: %w", c.id, err)
		}
	}
	c.left("ended")
	return nil
}

// left notes that the candidate has left all lines, as far as it is concerned.
func (c *candidate) left(why string) {
	for _, e := range c.a.elections {
		ev := history.Event{Kind: history.Left, Election: e, Candidate: c.id, Why: why}
		c.a.notes.Note(ev)
		c.a.live.note(ev)
	}
}

// network calls f for each of the candidate's proxies.
func (c *candidate) network(f func(*proxy.Proxy)) {
	for _, p := range c.proxies {
		f(p)
	}
}
