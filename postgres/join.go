package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// memberAt returns a member. Its key is its position.
func memberAt(line string, position uint64, value []byte) backend.Member {
	return backend.Member{Line: line, Key: strconv.FormatUint(position, 10), Position: position, Value: string(value)}
}

// A joining is what a member is to be.
type joining struct {
	line, value string
	shared      bool
	record      string          // to tell of
	item        *backend.Member // that it claims
}

// Join adds a member at the end of the line; see [backend.Session]. The answer also has where it
// stands, and the record.
func (s *session) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	return s.join(ctx, joining{line: line, value: value, record: record})
}

// JoinShared is Join for a shared member; see [backend.Session].
func (s *session) JoinShared(ctx context.Context, line, value, record string) (backend.Joined, error) {
	return s.join(ctx, joining{line: line, value: value, record: record, shared: true})
}

// Claim is JoinShared for a member that claims the item; see [backend.Session]. The transaction
// demands that the item stands, and that no other claim for it does. Claims of one line come one
// after the other.
func (s *session) Claim(ctx context.Context, line, value, record string, item backend.Member) (backend.Joined, error) {
	return s.join(ctx, joining{line: line, value: value, record: record, shared: true, item: &item})
}

func (s *session) join(ctx context.Context, what joining) (backend.Joined, error) {
	return s.joining.Do(ctx, func() (backend.Joined, func(), error) {
		j, err := s.add(ctx, what)
		return j, nil, err
	})
}

// add joins, and returns when it is certain whether it has. ctx is the caller's: when it has ended,
// add does not begin again.
//
// Each attempt has a number of its own. After a lost answer the number is burnt: no request with it
// takes effect from then on, also if it is still on its way, and the answer says whether one has.
func (s *session) add(ctx context.Context, what joining) (j backend.Joined, err error) {
	q := what.request()
	var number any // nil if it was not sent
	q.begin = func() error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		number = s.joins.Add(1)
		q.args[0] = number
		return nil
	}
	for pause := s.b.o.backoff(); ; {
		number = nil
		a, err := s.send(q)
		switch {
		case err == nil:
			return s.joined(what, a)
		case errors.Is(err, errBurnt): // because of another join, and it has done nothing
			continue
		case errors.Is(err, backend.ErrTaken):
			return j, fmt.Errorf("%w: %s", backend.ErrTaken, what.item.Key)
		case !lost(err):
			return j, err
		case number == nil:
			if err := pause.After(ctx, err); err != nil {
				return j, err
			}
			continue
		}
		a, err = s.again(s.Context(), &request{function: "burn", args: []any{number}, lost: true})
		if err != nil {
			s.End(fmt.Errorf("nobody knows whether a join has taken effect: %w", err)) // its member goes with the session
			return j, err
		}
		r := a.first()
		if r.null() {
			if err := pause.After(ctx, err); err != nil {
				return j, err
			}
			continue
		}
		j.Member = memberAt(what.line, r.position(), []byte(what.value))
		j.Shared = what.shared
		s.b.saw(int64(j.Position))
		return j, r.err()
	}
}

// request returns the request for a join, whose first argument is to be its number.
func (what joining) request() *request {
	var subject, itemLine, itemPosition any
	if name, ok := kit.SubjectOf(backend.Member{Value: what.value, Shared: what.shared}); ok {
		if subject = ""; strings.Trim(name, "0123456789 ") == "" { // as those of items are; others have other values
			subject = name[:min(len(name), 100)]
		}
	}
	if what.item != nil {
		itemLine, itemPosition = what.item.Line, what.item.Position
	}
	return &request{function: "join", args: []any{nil, what.line, []byte(what.value), what.shared, subject, itemLine, itemPosition, what.record}}
}

// joined reads the answer to a join.
func (s *session) joined(what joining, a answer) (j backend.Joined, err error) {
	r := a.first()
	j.Member = memberAt(what.line, r.position(), []byte(what.value))
	j.Shared = what.shared
	s.b.saw(int64(j.Position))
	if p, _, err := s.placeOf(j.Member, a); err == nil {
		j.Place = &p
	}
	if what.record != "" {
		j.Record = &backend.Record{Name: what.record, Value: r.bytes(), Version: r.version()}
	}
	return j, r.err()
}

// Leave removes m; see [backend.Session]. It is also removed if its caller gives up.
func (s *session) Leave(ctx context.Context, m backend.Member) error {
	_, err := kit.Await(ctx, s.Life, func() (answer, error) { return answer{}, s.leave(m) })
	return err
}

// leave removes m. It returns when m has gone, or the session has ended.
func (s *session) leave(m backend.Member) error {
	_, err := s.again(s.Context(), &request{function: "leave", args: []any{m.Line, m.Position}})
	return err
}
