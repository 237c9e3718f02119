package local

import (
	"context"
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// Ahead says who stands just in front of m; see [backend.Session]. It reads two files, and
// tests the locks of m and of the members in front of it that it would wait for, from the
// nearest on, until it finds one that stands. It does not test a member again that it has found
// gone.
func (s *session) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, gone, err := s.look(m, false, 0)
	if gone {
		return s.settledPlace(ctx, m, 0)
	}
	return p, err
}

// settledPlace is Ahead if m, or a member in front of it, has gone. let is as in look.
func (s *session) settledPlace(ctx context.Context, m backend.Member, let uint64) (p backend.Place, err error) {
	err = s.settled(ctx, m.Line, func() error {
		p, _, err = s.look(m, true, let)
		return err
	})
	return p, err
}

// look says who stands in front of m. settled says that nobody decides in the line meanwhile. gone
// says that m, or a member in front of it, has gone: the answer then counts only if settled.
//
// let is 0, or the position of a member that, as the caller knows, nobody holds. Its lock is not
// tested: its name is being removed, and to look that up may take as long as the disk does.
func (s *session) look(m backend.Member, settled bool, let uint64) (p backend.Place, gone bool, err error) {
	known := s.known(m)
	own := uncertain
	if known.own {
		// This comes first, because it needs no descriptor: a leader must hear that it was removed
		// also when it has none left.
		if own = known.look(); own == replaced {
			return p, false, backend.ErrNotMember
		}
	}
	d, err := s.dir.dir(m.Line)
	if errors.Is(err, fs.ErrNotExist) {
		return p, false, backend.ErrNotMember
	}
	if err != nil {
		return p, false, err
	}
	defer d.close()
	im, err := d.image(m.Line)
	if err != nil {
		return p, false, err
	}
	self, stands, err := im.line.get(m.Position)
	if err == nil && !stands {
		err = backend.ErrNotMember
	}
	if err != nil {
		return p, false, err
	}
	if own != itself {
		if stands, err = d.stands(self); err != nil {
			return p, false, err
		}
	}
	if !stands {
		return p, true, backend.ErrNotMember
	}
	header, err := im.header()
	if err != nil {
		return p, false, err
	}
	var ahead *backend.Member
	at, err := im.line.find(known.front + 1)
	for err == nil && at > 0 && ahead == nil {
		var other backend.Member
		at = im.line.begin(at - 1)
		if other, _, err = im.line.member(at); err != nil || other.Position < known.head {
			break
		}
		if self.Shared && other.Shared {
			continue
		}
		if stands = other.Position != let || other.Pinned; stands {
			stands, err = d.stands(other)
		}
		if stands {
			ahead = &other
		}
		gone = gone || !stands
	}
	if err != nil {
		return p, false, err
	}
	p, err = kit.PlaceOf(self, ahead, header)
	if err == nil && (settled || !gone) {
		s.learn(self, p)
	}
	return p, gone, err
}

// known is what a session knows of the members in front of one that it has joined. It need not look
// again, because nobody joins in front of a member.
type known struct {
	own   bool   // this session holds the member
	path  string // of its FIFO
	dev   uint64 // the file system of that
	ino   uint64 // and its number there
	front uint64 // the member waits for nobody with a larger position
	head  uint64 // no member with a smaller position stands
}

// A sight is what a look at the path of a FIFO shows.
type sight int

const (
	itself    sight = iota // the FIFO that the session holds
	replaced               // another file, or none
	uncertain              // unknown, because the path cannot be followed
)

// look looks whether the FIFO is at its path, by which others find it. The session has it open, so no other
// file has its number. This takes no descriptor. It also finds that a folder was moved, or that something
// was mounted over it.
func (k *known) look() sight {
	var is unix.Stat_t
	switch err := unix.Lstat(k.path, &is); {
	case err == unix.ENOENT || err == unix.ENOTDIR:
		return replaced
	case err != nil:
		return uncertain
	case is.Dev == k.dev && is.Ino == k.ino:
		return itself
	}
	return replaced
}

func (s *session) known(m backend.Member) known {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own := s.places[m.Position]; own != nil {
		return own.known
	}
	return known{front: m.Position - 1}
}

// learn notes where m stands.
func (s *session) learn(m backend.Member, p backend.Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.places[m.Position]
	if own == nil {
		return
	}
	if p.First && !m.Shared && own.front != 0 {
		setHead(own.fd)
	}
	own.front = p.Ahead.Position
}
