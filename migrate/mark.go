package migrate

import (
	"context"
	"strconv"
	"time"

	"github.com/succession-dev/succession/backend"
)

// A process of this package marks each of its members: it joins a second line on the
// same coordinator, named after the election, with the member's position as the value.
// Nobody leads there and nobody waits; it is how [Backend.Status] tells who runs with
// both coordinators. A mark is as ephemeral as the member, so a crash leaves none, and
// the member's own value stays the user's. Nothing depends on a mark but what people
// are told: a process that has no right to that line goes on without.
const marksSuffix = ".migrate-both"

// markBound is how long a candidate waits for its mark.
const markBound = 2 * time.Second

// companion is the name of a line or record that belongs to the election and is not
// part of it.
func companion(election, suffix string) string {
	return election[:min(len(election), backend.MaxName-len(suffix))] + suffix
}

// mark marks p's member on the coordinator, if that can be done in time.
func (s *session) mark(ctx context.Context, p *place, sd side) {
	ctx, cancel := context.WithTimeout(ctx, markBound)
	defer cancel()
	m := p.member(sd)
	mark, err := s.with(sd).Join(ctx, companion(p.line, marksSuffix), strconv.FormatUint(m.Position, 10))
	if err != nil {
		s.b.log.Info("could not say that this process runs with both coordinators; the status of the migration will not know", "election", p.line, "member", m.Key, "err", err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.marks[sd] = mark
}

// unmark takes p's marks away. One that stays goes with the session, and means nothing
// without its member.
func (s *session) unmark(ctx context.Context, p *place) {
	p.mu.Lock()
	marks := p.marks
	p.marks = [2]backend.Member{}
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, markBound)
	defer cancel()
	for sd, mark := range marks {
		if mark.Key != "" {
			_ = s.with(side(sd)).Leave(ctx, mark)
		}
	}
}

// marked returns the positions of the members of the election that have marks on the
// coordinator of half.
func marked(ctx context.Context, half backend.Session, election string) (map[uint64]bool, error) {
	l, err := half.Line(ctx, companion(election, marksSuffix))
	if err != nil {
		return nil, err
	}
	positions := make(map[uint64]bool, len(l.Members))
	for _, m := range l.Members {
		if n, err := strconv.ParseUint(m.Value, 10, 64); err == nil {
			positions[n] = true
		}
	}
	return positions, nil
}
