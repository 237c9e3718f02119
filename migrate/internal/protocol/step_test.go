package protocol_test

import (
	"errors"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// Two processes begin at once. One reads the members one by one: that of the other, who gives up,
// before it has left, and the gate when it stands.
func TestBeginThatReadsALineInParts(t *testing.T) {
	r := protocol.Route{From: "memory:a", To: "memory:b"}
	h := header.Header{Migration: header.Migration{ID: "m", From: r.From, To: r.To, Step: protocol.StepBegun, Gate: 2}}
	gaveUp := backend.Member{Line: "e", Key: "n_1", Position: 1, Value: protocol.GateValue + "other"}
	gate := backend.Member{Line: "e", Key: "n_2", Position: 2, Value: protocol.GateValue + "m", Pinned: true}
	var l protocol.Lines
	l[protocol.From].Version = backend.Absent
	l[protocol.To] = header.Line{Members: []backend.Member{gaveUp, gate}, Header: h, Version: 3}
	if q, err := r.Begin("mine", l); !errors.Is(err, backend.ErrVersion) {
		t.Errorf("got %+v, %v; want to look again", q, err)
	}
	l[protocol.To].Members = []backend.Member{gate}
	if q, err := r.Begin("mine", l); err != nil || q != (protocol.Request{}) {
		t.Errorf("got %+v, %v; it has begun", q, err)
	}
}
