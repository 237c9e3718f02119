// Package choice decides which member of a line is to lead. It asks no coordinator and no clock: it
// decides from what a candidate has seen of its line.
package choice

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/unready"
	"github.com/succession-dev/succession/internal/value"
)

// A View is what a member has seen of its line.
type View struct {
	Line    header.Line
	Unready unready.Positions // who has said that it is not ready
	At      time.Time         // by the clock of the member
}

// An Act is what the first member of a line is to do.
type Act int

const (
	Lead  Act = iota
	Yield     // leave the line: another member is to lead
	Wait      // it is not ready, and nobody behind it may be
)

// A Verdict says what a member is to do. If it is to yield, To and Why say to whom and why.
type Verdict struct {
	Act Act
	To  backend.Member
	Why string
}

func yield(to backend.Member, format string, args ...any) Verdict {
	return Verdict{Yield, to, fmt.Sprintf(format, args...)}
}

// Of returns what m, which is first in the line and has the rank own, is to do. A gate that pauses
// the election goes before all; then comes the member that an operator wishes for; then, of the
// ready members, the one with the highest priority; then one at the site of the last leader; then
// the first in line. So m yields only to a member that would not yield to m. Shared members yield to
// a gate alone, and nobody yields to them because of their rank: who asked first has the lock first.
func (v View) Of(m backend.Member, ready bool, own value.Rank) Verdict {
	if gate, paused := v.Line.Paused(); paused {
		by := value.Parse(gate.Value)
		return yield(gate, "%s has paused the election: %s", by.ID, by.Text)
	}
	if m.Shared {
		return Verdict{Act: Lead}
	}
	c, behind := v.Line.Header.Choice, v.behind(m)
	if Wished(c.Wish, v.At) {
		if ready && m.Position == c.Wish.Position {
			return Verdict{Act: Lead}
		}
		for _, x := range behind {
			if x.Position == c.Wish.Position {
				return yield(x, "%s is wished for", value.Named(x))
			}
		}
	}
	near := func(r value.Rank) int { // 1 if the last leader was there
		if r.Site != "" && r.Site == c.Site {
			return 1
		}
		return 0
	}
	better, most := backend.Member{}, own
	for _, x := range behind {
		r := value.Parse(x.Value).Rank
		if !ready && better == (backend.Member{}) || !x.Shared && cmp.Or(cmp.Compare(r.Priority, most.Priority), cmp.Compare(near(r), near(most))) > 0 {
			better, most = x, r
		}
	}
	switch {
	case better == backend.Member{} && ready:
		return Verdict{Act: Lead}
	case better == backend.Member{}:
		return Verdict{Act: Wait}
	case !ready:
		return yield(better, "this one is not ready, and %s may be", value.Named(better))
	case most.Priority > own.Priority:
		return yield(better, "%s has priority %d, and this one %d", value.Named(better), most.Priority, own.Priority)
	}
	return yield(better, "%s is in %s, where the last leader was", value.Named(better), most.Site)
}

// behind returns the members behind m that may be ready, without gates.
func (v View) behind(m backend.Member) (out []backend.Member) {
	front := max(0, slices.IndexFunc(v.Line.Members, func(o backend.Member) bool { return o.Key == m.Key && o.Position == m.Position }))
	for i, o := range v.Line.Members {
		if i > front && !o.Pinned && !v.Unready[o.Position] {
			out = append(out, o)
		}
	}
	return out
}

// Wished reports whether there is a wish that has not lapsed at the time at. If clocks differ, a
// wish lasts longer or shorter, and nothing else changes.
func Wished(w header.Wish, at time.Time) bool {
	return w.Position != 0 && at.UnixMilli() < w.Until && w.Until <= at.Add(2*header.MaxWish).UnixMilli()
}
