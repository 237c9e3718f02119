package protocol

import (
	"slices"
	"strings"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/value"
)

// Gate returns the gate, if it stands at the head of the line.
func Gate(l header.Line) (backend.Member, bool) {
	if len(l.Members) > 0 && l.Members[0].Pinned && l.Header.Migration.Gate != 0 && l.Members[0].Position == l.Header.Migration.Gate {
		return l.Members[0], true
	}
	return backend.Member{}, false
}

// BehindGate reports whether m stands first behind the gate.
func BehindGate(l header.Line, m backend.Member) bool {
	_, ok := Gate(l)
	return ok && len(l.Members) > 1 && Same(l.Members[1], m)
}

// Same reports whether a and b are one member.
func Same(a, b backend.Member) bool {
	return a.Line == b.Line && a.Key == b.Key && a.Position == b.Position
}

// Index returns where m stands among the members, or -1 if it does not.
func Index(members []backend.Member, m backend.Member) int {
	return slices.IndexFunc(members, func(o backend.Member) bool { return Same(o, m) })
}

// GateValue begins the value of a member that is, or is about to be, a gate.
const GateValue = "gate of migration "

// besides returns the members of the line except m and others that are about to be a gate.
func besides(l header.Line, m backend.Member) (others []backend.Member) {
	for _, o := range l.Members {
		if !Same(o, m) && (o.Pinned || !strings.HasPrefix(o.Value, GateValue)) {
			others = append(others, o)
		}
	}
	return others
}

// Names names members for people: by the IDs of their processes, and by their keys.
func Names(members []backend.Member) string {
	out := make([]string, len(members))
	for i, m := range members {
		out[i] = value.ID(m.Value) + " (" + m.Key + ")"
	}
	return strings.Join(out, ", ")
}
