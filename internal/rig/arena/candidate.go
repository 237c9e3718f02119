//go:build linux

package arena

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/drift"
	"github.com/succession-dev/succession/internal/rig/worker"
)

const (
	pace = 200 * time.Millisecond // of the writes of a leader
	work = 100 * time.Millisecond // longest time from a check to a write

	exitUnclosed = 3 // see package worker
)

// A Candidate is one worker after the other under one name, behind its own proxies.
type Candidate struct {
	ID      string
	Proxies []*proxy.Proxy // one for each server

	// URL is what the next worker is started with. Where it names the servers, and not the
	// proxies, Via has the worker go through the proxies nevertheless.
	URL string
	Via bool

	// Name is one that only this candidate knows, with two addresses of which one accepts connections and stays
	// silent, in front of each proxy; "" for none.
	Name string

	Busy sync.Mutex // held by the fault that the candidate suffers

	ways   [2][]*proxy.Proxy // at each of the addresses of Name
	silent int               // which of them is

	a       *Arena
	servers []string

	mu   sync.Mutex
	runs int
	proc *Process // nil before the first start
}

// Fronts returns the addresses of the proxies, by name where the candidate has one.
func (c *Candidate) Fronts() []string {
	addrs := make([]string, len(c.Proxies))
	for i, p := range c.Proxies {
		addrs[i] = p.Addr()
		if c.Name != "" {
			_, port, _ := net.SplitHostPort(p.Addr())
			addrs[i] = net.JoinHostPort(c.Name, port)
		}
	}
	return addrs
}

// addresses are those of a candidate's name.
var addresses = [2]string{"127.0.0.2", "127.0.0.3"}

// Call gives the candidate a name, whose first address is the silent one.
func (c *Candidate) Call(name string) error {
	for i, addr := range addresses {
		for _, p := range c.Proxies {
			_, port, _ := net.SplitHostPort(p.Addr())
			l, err := net.Listen("tcp", net.JoinHostPort(addr, port))
			if err != nil {
				return err
			}
			way, err := proxy.Start(p.Addr(), &proxy.Options{Listener: l})
			if err != nil {
				return err
			}
			c.ways[i] = append(c.ways[i], way)
		}
	}
	c.Name = name
	c.silence(0)
	return nil
}

// silence makes one of the addresses the silent one, also on connections that there are.
func (c *Candidate) silence(i int) {
	for _, way := range c.ways[1-i] {
		way.Heal()
	}
	for _, way := range c.ways[i] {
		way.Cut()
	}
	c.silent = i
}

// Start starts the next worker.
func (c *Candidate) Start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs++
	a := c.a
	log := filepath.Join(a.Dir, fmt.Sprintf("%s.%d", c.ID, c.runs))
	cfg := worker.Config{
		URL: c.URL, ID: c.ID, Elections: a.Elections, Store: filepath.Join(a.Dir, "store"), Log: log,
		Origin: a.origin, Pace: pace, Work: work, Heedless: a.Heedless, Forgetful: a.Forgetful,
	}
	if c.Name != "" {
		cfg.Names = map[string][]string{c.Name: addresses[:]}
	}
	if c.Via {
		for i, front := range c.Fronts() {
			cfg.Via = append(cfg.Via, [2]string{c.servers[i], front})
		}
	}
	env := slices.Clone(a.Env)
	if len(a.Rates) > 0 {
		env = append(env, fmt.Sprintf("%s=%g", drift.Rate, a.Rates[slices.Index(a.Candidates, c)]))
	}
	p, err := StartProcess(append(a.Worker[:len(a.Worker):len(a.Worker)], cfg.Args()...), env, log+".log", a.Live.hear)
	if err != nil {
		return err
	}
	c.proc = p
	return nil
}

// process returns the present worker.
func (c *Candidate) process() *Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.proc
}

// Resign has the worker give up what it leads.
func (c *Candidate) Resign() { c.process().send(worker.Resign) }

// Crash kills the worker, and notes that it has left. Its last acts say until when it led.
func (c *Candidate) Crash() {
	c.process().Kill()
	c.left("killed")
}

// Retire ends the worker in good order, and notes that it has left.
func (c *Candidate) Retire() error {
	if unclosed, err := c.end(); err != nil && !unclosed {
		return err
	}
	c.left("ended")
	return nil
}

// end ends the worker in good order. It reports whether nothing was wrong with that but what the coordinator did not answer.
func (c *Candidate) end() (unclosed bool, err error) {
	err = c.process().quit(QuitLimit)
	if err == nil {
		return false, nil
	}
	var status interface{ ExitCode() int }
	unclosed = errors.As(err, &status) && status.ExitCode() == exitUnclosed
	return unclosed, fmt.Errorf("%s: %w; see %s.%d.log", c.ID, err, c.ID, c.runs)
}

// left notes that the candidate has left all lines, as far as it is concerned.
func (c *Candidate) left(why string) {
	for _, e := range c.a.Elections {
		ev := history.Event{Kind: history.Left, Election: e, Candidate: c.ID, Why: why}
		c.a.Notes.Note(ev)
		c.a.Live.note(ev)
	}
}

// network calls f for each of the candidate's proxies.
func (c *Candidate) network(f func(*proxy.Proxy)) {
	for _, p := range c.Proxies {
		f(p)
	}
}
