package page

import (
	"slices"

	"github.com/succession-dev/succession/elect"
)

// A pause is that of an election.
type pause struct {
	By     string `json:"by"`
	Reason string `json:"reason"`
	Token  string `json:"token"` // of the gate
	Front  int    `json:"front"` // how many stand in front of the gate, and may lead
}

// pauseOf returns the pause of an election with these in line; nil if it is not paused.
func pauseOf(line []elect.Leader) *pause {
	i := slices.IndexFunc(line, func(l elect.Leader) bool { return l.Paused })
	if i < 0 {
		return nil
	}
	return &pause{By: line[i].ID, Reason: line[i].Value, Token: number(line[i].Token), Front: i}
}
