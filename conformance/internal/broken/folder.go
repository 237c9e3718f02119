package broken

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/header"
)

var folderFlaws = []Flaw{
	{
		Name:    "litter",
		Breaks:  "L7: it keeps a record of its own in the election's folder",
		Must:    "L7.folder",
		May:     "L1.cancelled L1.cancelled-lost G6.cancelled G6.first",
		session: func(_ *Backend, s backend.Session) backend.Session { return &litter{s} },
	},
	{
		Name:    "forgiving",
		Breaks:  "L7: a header that is damaged is taken for none",
		Must:    "L7.damaged L7.fence-limit L7.later",
		session: func(_ *Backend, s backend.Session) backend.Session { return &forgiving{s} },
	},
	{
		Name:    "leaves out",
		Breaks:  "L7: what a later version has written into the header is lost when it is written again",
		Must:    "L7.later",
		session: func(_ *Backend, s backend.Session) backend.Session { return &leavesOut{s} },
	},
	{
		Name:    "unneeding",
		Breaks:  "L7: whoever leads need not know what the header says that a leader needs",
		Must:    "L7.later",
		session: func(_ *Backend, s backend.Session) backend.Session { return &unneeding{s} },
	},
	{
		Name:    "wrapping",
		Breaks:  "L7: the fence is added to the position, however large it is",
		Must:    "L7.fence-limit",
		session: func(_ *Backend, s backend.Session) backend.Session { return &wrapping{s} },
	},
	{
		Name:    "strict",
		Breaks:  "L7: the data of a stranger under the election's name is taken for a damaged header",
		Must:    "L7.foreign",
		session: func(_ *Backend, s backend.Session) backend.Session { return &strict{s} },
	},
	{
		Name:    "container",
		Breaks:  "L7: the election's record goes with the last member",
		Must:    "L7.header",
		May:     "G5.bytes L7.ahead",
		session: func(_ *Backend, s backend.Session) backend.Session { return &container{s} },
	},
	{
		Name:    "no header",
		Breaks:  "L7: Ahead does not say what is in the election's record",
		Must:    "L7.ahead",
		May:     "L3.place-header L3.place-sealed G7.asked G10.asked",
		session: func(_ *Backend, s backend.Session) backend.Session { return &noHeader{s} },
	},
	{
		Name:   "fence of the heir",
		Breaks: "L7: the fence of who waits is read while it waits, and not again",
		Must:   "L7.fence G2.fence",
		May:    "L7.fence-cut L7.fence-closed L7.fence-expired L3.place-fence",
		session: func(_ *Backend, s backend.Session) backend.Session {
			return &heirsFence{Session: s, fences: make(map[backend.Member]uint64)}
		},
	},
	{
		Name:    "fence before line",
		Breaks:  "L7: the fence is read, and then the line",
		Must:    "L7.fence-cut",
		May:     "L7.fence-closed L7.fence-expired",
		session: func(_ *Backend, s backend.Session) backend.Session { return &fenceFirst{s} },
	},
	{
		Name:    "header of the list",
		Breaks:  "L7: the line is read with its header, then who stands in it, and the header not again",
		Must:    "L7.fence-closed L7.fence-expired",
		May:     "L7.fence-cut L2.cost G5",
		session: func(_ *Backend, s backend.Session) backend.Session { return &headerOfList{s} },
	},
}

type noHeader struct{ backend.Session }

func (s *noHeader) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	p.Header = backend.Header{}
	return p, err
}

type litter struct{ backend.Session }

func (s *litter) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	m, err := s.Session.Join(ctx, line, value, record)
	if err == nil {
		_, err = s.Session.Put(ctx, line+"/owner", []byte(m.Key), nil)
	}
	return m, err
}

type forgiving struct{ backend.Session }

func (s *forgiving) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if errors.Is(err, backend.ErrHeader) {
		return backend.Place{First: true, Token: m.Position}, nil
	}
	return p, err
}

// leaveOut leaves out of a header the notes that this version does not know.
func leaveOut(h backend.Header) backend.Header {
	noted(&h, func(h *header.Header) { h.Later = "" })
	return h
}

// noted changes what the header notes, if it can be read.
func noted(h *backend.Header, change func(*header.Header)) {
	if n, err := header.Of(*h); err == nil {
		change(&n)
		*h = n.Stored()
	}
}

type leavesOut struct{ backend.Session }

func (s *leavesOut) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	return s.Session.Pin(ctx, m, leaveOut(h), at)
}

type unneeding struct{ backend.Session }

func (s *unneeding) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if !errors.Is(err, backend.ErrHeader) {
		return p, err
	}
	l, failed := s.Session.Line(ctx, m.Line)
	if failed != nil || l.Header.Understood() == nil || l.Members[0].Position != m.Position {
		return p, err
	}
	return backend.Place{First: true, Token: l.Token(m), Header: l.Header}, nil
}

type wrapping struct{ backend.Session }

func (s *wrapping) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if !errors.Is(err, backend.ErrHeader) {
		return p, err
	}
	r, failed := s.Session.Get(ctx, m.Line)
	var h struct {
		Format int    `json:"succession"`
		Fence  uint64 `json:"fence"`
	}
	if failed != nil || json.Unmarshal(r.Value, &h) != nil || h.Fence <= backend.MaxFence {
		return p, err
	}
	return backend.Place{First: true, Token: h.Fence + m.Position}, nil
}

type strict struct{ backend.Session }

func (s *strict) check(ctx context.Context, election string) error {
	r, err := s.Session.Get(ctx, election)
	if err == nil && len(r.Value) > 0 && !bytes.HasPrefix(r.Value, []byte(`{"succession":`)) {
		return backend.ErrHeader
	}
	return err
}

func (s *strict) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	if err := s.check(ctx, m.Line); err != nil {
		return backend.Place{}, err
	}
	return s.Session.Ahead(ctx, m)
}

func (s *strict) Line(ctx context.Context, line string) (backend.Line, error) {
	if err := s.check(ctx, line); err != nil {
		return backend.Line{}, err
	}
	return s.Session.Line(ctx, line)
}

type container struct{ backend.Session }

func (s *container) Leave(ctx context.Context, m backend.Member) error {
	if err := s.Session.Leave(ctx, m); err != nil {
		return err
	}
	l, err := s.Session.Line(ctx, m.Line)
	if err == nil && len(l.Members) == 0 {
		_ = s.Session.Delete(ctx, m.Line, nil)
	}
	return nil
}

type heirsFence struct {
	backend.Session
	mu     sync.Mutex
	fences map[backend.Member]uint64 // of the members that wait
}

func (s *heirsFence) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if err != nil {
		return p, err
	}
	s.mu.Lock()
	fence, known := s.fences[m]
	s.mu.Unlock()
	switch {
	case known && p.First:
		p.Token = fence + m.Position
	case !known && !p.First:
		l, err := s.Session.Line(ctx, m.Line)
		if err != nil {
			return p, err
		}
		s.mu.Lock()
		s.fences[m] = l.Header.Fence
		s.mu.Unlock()
	}
	return p, nil
}

type fenceFirst struct{ backend.Session }

func (s *fenceFirst) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	r, err := s.Session.Get(ctx, m.Line)
	if err != nil {
		return backend.Place{}, err
	}
	p, err := s.Session.Ahead(ctx, m)
	if err == nil && p.First {
		h, _ := backend.ParseHeader(r.Value)
		p.Token = h.Fence + m.Position
	}
	return p, err
}

type headerOfList struct{ backend.Session }

func (s *headerOfList) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	l, err := s.Session.Line(ctx, m.Line)
	if err != nil {
		return backend.Place{}, err
	}
	p, err := s.Session.Ahead(ctx, m)
	if err == nil && p.First && len(l.Members) > 0 && l.Members[0].Position < m.Position {
		p.Token, p.Header = l.Token(m), l.Header
	}
	return p, err
}
