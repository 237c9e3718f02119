package main

import (
	"time"

	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// A notebook holds what the candidates of one election have said.
type notebook struct {
	election string
	base     time.Time // the zero of its events
	events   []history.Event

	ready  map[string]bool
	leads  map[string]bool // who acts as leader now
	ended  map[string]bool // whose term has ended since begin
	last   time.Time       // when any of this changed
	failed string          // what a candidate has complained of
}

func newNotebook(election string) notebook {
	return notebook{
		election: election, base: time.Now(),
		ready: make(map[string]bool), leads: make(map[string]bool), ended: make(map[string]bool),
	}
}

// begin forgets what ended before.
func (n *notebook) begin(at time.Time) {
	clear(n.ended)
	n.last = at
}

// note takes down what a candidate said.
func (n *notebook) note(e coordtest.PeerEvent) {
	id := e.Peer.ID
	switch e.What {
	case "ready":
		n.ready[id] = true
	case "elected":
		n.leads[id] = true
		n.keep(id, history.Won, e.At)
	case "lost":
		n.end(id, history.Ended, e.At)
	default:
		n.failed = id + " " + e.What
	}
}

// end takes down the end of a term. A library may tell of one more than there were.
func (n *notebook) end(id string, how history.Kind, at time.Time) {
	if !n.leads[id] {
		return
	}
	n.leads[id], n.ended[id] = false, true
	n.keep(id, how, at)
}

func (n *notebook) keep(id string, kind history.Kind, at time.Time) {
	n.last = time.Now()
	n.events = append(n.events, history.Event{At: n.at(at), Kind: kind, Election: n.election, Candidate: id})
}

// at returns t as time since base, by the clock that all processes share.
func (n *notebook) at(t time.Time) time.Duration { return t.Round(0).Sub(n.base.Round(0)) }
