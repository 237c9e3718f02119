package composite

import (
	"context"
	"strconv"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// A process with both coordinators marks each of its members: it joins a second line on the same
// coordinator, named after the election, with the member's position as the value. Nobody leads
// there and nobody waits; from the marks a status knows which members run with both coordinators. A
// mark is as ephemeral as the member, so a crash leaves none, and the member's own value stays the
// user's. Marks are only for what people are told: a process without a right to that line goes on
// without marks.
const marksSuffix = naming.Marks

// markBound is how long a candidate waits for its mark.
const markBound = 2 * time.Second

// mark marks the candidacy's member on the coordinator, if that can be done in time.
func (s *session) mark(ctx context.Context, c *candidacy, sd protocol.Side) {
	ctx, cancel := context.WithTimeout(ctx, markBound)
	defer cancel()
	m := c.now().at[sd]
	mark, err := s.part(sd).Join(ctx, naming.Beside(c.line, marksSuffix), strconv.FormatUint(m.Position, 10), "")
	if err != nil {
		s.log.Info("could not say that this process runs with both coordinators; the status of the migration will not know", "election", c.line, "member", m.Key, "err", err)
		return
	}
	c.change(func(st *standing) { st.marks[sd] = mark.Member })
}

// unmark removes the candidacy's marks. A mark that stays goes with the session, and means nothing
// without its member.
func (s *session) unmark(ctx context.Context, c *candidacy) {
	var marks [2]backend.Member
	c.change(func(st *standing) { marks, st.marks = st.marks, marks })
	ctx, cancel := context.WithTimeout(ctx, markBound)
	defer cancel()
	for sd, mark := range marks {
		if mark.Key != "" {
			_ = s.part(protocol.Side(sd)).Leave(ctx, mark)
		}
	}
}

// Marked returns the positions of the election's members on the coordinator of part that
// have marks.
func Marked(ctx context.Context, part backend.Session, election string) (map[uint64]bool, error) {
	l, err := part.Line(ctx, naming.Beside(election, marksSuffix))
	if err != nil {
		return nil, err
	}
	positions := make(map[uint64]bool, len(l.Members))
	for _, m := range l.Members {
		if n, ok := naming.Position(m.Value); ok {
			positions[n] = true
		}
	}
	return positions, nil
}
