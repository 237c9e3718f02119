package main

import (
	"time"

	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// A contender is one candidate and its connections.
type contender struct {
	id      string
	peer    *coordtest.Peer
	proxies []*proxy.Proxy
	crashed bool // by the fault
}

func (c *contender) each(do func(*proxy.Proxy)) {
	for _, p := range c.proxies {
		do(p)
	}
}

// crash kills the process, which does nothing from then on.
func (c *contender) crash(r *run) {
	at := time.Now()
	c.crashed = true
	c.peer.Kill()
	r.notes.end(c.id, history.Left, at)
}

func (c *contender) stop() {
	if c.peer != nil {
		c.peer.Kill()
	}
	c.each((*proxy.Proxy).Close)
}
