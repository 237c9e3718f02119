package main

import (
	"fmt"

	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect"
)

// A member is how one that stands in line is printed as JSON.
type member struct {
	ID           string `json:"id"`
	Value        string `json:"value,omitempty"`
	Key          string `json:"key"`
	Token        uint64 `json:"token"`
	Acknowledged bool   `json:"acknowledged"`
	Pinned       bool   `json:"pinned,omitempty"`
	Paused       bool   `json:"paused,omitempty"`
	Priority     int    `json:"priority,omitempty"`
	Site         string `json:"site,omitempty"`
	NotReady     string `json:"not_ready,omitempty"`
}

func memberOf(c elect.Candidate) member {
	return member{ID: c.ID, Value: c.Value, Key: c.Key, Token: c.Token, Pinned: c.Pinned, Priority: c.Priority, Site: c.Site, NotReady: c.NotReady}
}

// name returns what the member is called in text.
func (m member) name() string { return ui.Visible(ui.NameOf(m.ID, m.Key)) }

// leaderOf returns who leads; nil if nobody does.
func leaderOf(s elect.State) *member {
	if s.Vacant() {
		return nil
	}
	m := memberOf(s.Leader.Candidate)
	m.Acknowledged = s.Leader.Acknowledged
	return &m
}

// gateOf returns what stands first and keeps everybody from leading; nil if nothing does.
func gateOf(s elect.State) *member {
	if s.Gate.Key == "" {
		return nil
	}
	m := memberOf(s.Gate)
	m.Paused = s.Paused
	return &m
}

// pausedBy says who has paused an election, and why.
func pausedBy(gate elect.Candidate) string {
	return fmt.Sprintf("paused by %s: %s", ui.Visible(gate.ID), ui.Visible(gate.Value))
}
