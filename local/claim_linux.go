package local

import (
	"cmp"
	"context"
	"fmt"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// Free returns the first item that nobody claims; see [backend.Session]. It tests the locks of the
// claims, and reads as many items as are claimed, and one more, and looks for their FIFOs.
func (s *session) Free(ctx context.Context, items, claims string) (m backend.Member, err error) {
	taken, err := s.lineOf(ctx, claims)
	if err != nil {
		return m, err
	}
	im, err := s.dir.read(items)
	if err != nil {
		return m, err
	}
	var first []backend.Member
	for at := 0; at < len(im.line.text) && len(first) <= len(taken.members); {
		if m, at, err = im.line.member(at); err != nil {
			return m, err
		}
		stands, err := s.dir.stands(m) // an operator may have removed an item
		if err != nil {
			return m, err
		}
		if stands {
			first = append(first, m)
		}
	}
	m, free, err := kit.FirstFree(first, taken.members)
	if err == nil && !free {
		err = backend.ErrTaken
	}
	return m, err
}

// Claim is JoinShared for a member that claims the item; see [backend.Session]. It holds the lock of
// the line, and keeps the item from being removed meanwhile.
func (s *session) Claim(ctx context.Context, line, value, _ string, item backend.Member) (backend.Joined, error) {
	j := &joining{m: backend.Member{Line: line, Value: value, Shared: true}, served: make(chan struct{}), cancel: func() {}}
	err := s.write(ctx, func(ctx context.Context, h *hold) error {
		stands, err := s.dir.pinned(item)
		if stands {
			item.Pinned = true
			stands, err = s.dir.stands(item)
		}
		if err != nil {
			return err
		}
		st, err := s.dir.load(line)
		if err == nil {
			err = s.dir.drop(st)
		}
		if err != nil {
			return err
		}
		claim := j.m
		claim.Position = limit // it would stand behind all
		if !stands || kit.ClaimedBefore(claim, st.members) {
			return fmt.Errorf("%w: %s", backend.ErrTaken, item.Key)
		}
		return s.serve(ctx, h, line, func() []*joining { return []*joining{j} })
	}, claim{line, write}, claim{item.Line, look})
	return j.joined(), cmp.Or(err, j.err)
}
