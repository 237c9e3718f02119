package main

import (
	"os"
	"slices"
	"strings"
	"time"

	"github.com/succession-dev/succession/bench/internal/candidate"
	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// A contender is one candidate and its connections.
type contender struct {
	id      string
	peer    *coordtest.Peer
	proxies []*proxy.Proxy
}

func (c *contender) each(do func(*proxy.Proxy)) {
	for _, p := range c.proxies {
		do(p)
	}
}

// crash kills the process, which does nothing from then on.
func (c *contender) crash(r *run) {
	at := time.Now()
	c.peer.Kill()
	r.notes.end(c.id, history.Left, at)
}

func (c *contender) stop() {
	if c.peer != nil {
		c.peer.Kill()
	}
	c.each((*proxy.Proxy).Close)
}

// startCandidate starts the process of one candidate.
func startCandidate(r *run, id string, addrs []string) (*coordtest.Peer, error) {
	o := coordtest.PeerOptions{
		Kind:    r.library.kind,
		Address: strings.Join(addrs, ","),
		Path:    "/" + r.election,
		ID:      id,
		Session: r.session,
		Events:  r.events,
		Dir:     r.dir,
	}
	if r.library.peer {
		return coordtest.StartPeer(o)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return coordtest.StartPeerProcess(o, slices.Concat([]string{self}, candidate.Arguments(candidate.Settings{
		Library:     r.library.kind,
		Coordinator: r.library.coordinator,
		Addresses:   addrs,
		Election:    r.election,
		ID:          id,
		Session:     r.session,
	})))
}
