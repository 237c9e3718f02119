package page

import (
	"context"
	"errors"
	"slices"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/header"
)

// A pause is that of an election.
type pause struct {
	By     string `json:"by"`
	Reason string `json:"reason"`
	Token  string `json:"token"` // of the gate
	Front  int    `json:"front"` // how many stand in front of the gate, and may lead
}

// pauseOf returns the pause of an election with these in line; nil if it is not paused.
func pauseOf(line header.Line, all []elect.Candidate) *pause {
	gate, paused := line.Paused()
	if !paused {
		return nil
	}
	i := slices.Index(line.Members, gate)
	return &pause{By: all[i].ID, Reason: all[i].Value, Token: number(all[i].Token), Front: i}
}

// pinless reports whether the backend has no pins, without which nothing can be paused.
func pinless(ctx context.Context, b backend.Backend) (bool, error) {
	s, err := b.Session(ctx)
	if err != nil {
		return false, err
	}
	// There is no such member, and drivers refuse that before they ask the coordinator.
	return errors.Is(s.Pin(ctx, backend.Member{}, backend.Header{}, backend.Absent), errors.ErrUnsupported), nil
}
