package engine

import (
	"fmt"
	"strings"

	"github.com/succession-dev/succession/backend"
)

// Short returns the last segment of a name. All names of a trial begin alike.
func Short(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// Show returns a member in words. ShowPlace and ShowLine do so for a place and a line.
func Show(m backend.Member) string {
	s := fmt.Sprintf("%s(%d)", m.Key, m.Position)
	if m.Pinned {
		s += " pinned"
	}
	return s
}

func ShowPlace(p backend.Place) string {
	if p.First {
		return fmt.Sprintf("first, token %d", p.Token)
	}
	return "behind " + Show(p.Ahead)
}

func ShowLine(ms []backend.Member) string {
	out := make([]string, len(ms))
	for i, m := range ms {
		out[i] = Show(m)
	}
	return "[" + strings.Join(out, " ") + "]"
}

func showIf(cond *backend.If) string {
	switch {
	case cond == nil || *cond == backend.If{}:
		return ""
	case cond.Member == backend.Member{}:
		return fmt.Sprintf(" if version %d", cond.Version)
	}
	return fmt.Sprintf(" if version %d and %s stands", cond.Version, Show(cond.Member))
}

// Same reports whether a and b are the same member. A position of 0 matches any, because Ahead may
// leave out the position of the predecessor.
func Same(a, b backend.Member) bool {
	return a.Line == b.Line && a.Key == b.Key && (a.Position == b.Position || a.Position == 0 || b.Position == 0)
}

// SameLine reports whether a line has exactly these members. It compares all their fields
// except for Pinned.
func SameLine(got, want []backend.Member) bool {
	if len(got) != len(want) {
		return false
	}
	for i, m := range got {
		m.Pinned = want[i].Pinned
		if m != want[i] {
			return false
		}
	}
	return true
}
