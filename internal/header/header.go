// Package header reads and changes the header of an election, and keeps a copy of its fence that
// survives the deletion of the election.
//
// A driver knows of a header what it decides by, and passes on its notes ([backend.Header]). [Header]
// has the notes too: what elect notes of who is to lead, and migrate of the election's move.
//
// The header is the record of an election. It holds the fence, which is added to positions to
// make tokens. Somebody raised the fence because positions alone would let tokens fall: after
// a restore of the coordinator, or after a migration from a coordinator with larger positions.
// An operator who deletes the election, its record and its folder, deletes the fence with it.
// So whoever raises a fence first writes it to a second record, outside the election. A
// candidate that has joined compares the two, and raises the header's fence again if it is
// smaller. That is soon enough: the deletion took the members too, so every leader after it has
// joined after it.
package header

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/internal/value"
)

// MaxWish is the longest time for which a wish may hold. A longer wish comes from a wrong clock or
// from a stranger, and would make all others give way for ever.
const MaxWish = 24 * time.Hour

// Is reports whether the value of a record is a header, be it an empty one, or begins like one.
func Is(value []byte) bool { return bytes.HasPrefix(value, []byte(`{"succession":`)) }

// Ask makes h ask the term with the token to resign. by says who asks, and its Text says why.
func Ask(h *Header, token uint64, by value.Of) {
	h.Resign, h.Asked = max(h.Resign, token), by.String()
}

// Asked says in one line who has asked for h's Resign, and why. It returns "" if Asked in h is not
// as [Ask] writes it.
func Asked(h *Header) string {
	by := value.Parse(h.Asked)
	line := by.ID
	if by.Text != "" {
		line += ": " + by.Text
	}
	if len(line) > maxAsked || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return ""
	}
	return line
}

// CheckAsked fails with [backend.ErrInvalid] if [Asked] could not show by.
func CheckAsked(by value.Of) error {
	h := Header{Asked: by.String()}
	if err := by.Check(); err != nil {
		return err
	}
	if Asked(&h) == "" {
		return fmt.Errorf("%w reason %.64q, or who gives it: both together are at most %d bytes of one line that can be printed", backend.ErrInvalid, by.Text, maxAsked)
	}
	return nil
}

// maxAsked is the longest text of who asks and why, in bytes. Each waiter in the line has it in
// memory.
const maxAsked = 512

// Update changes the header of an election. If m is not the zero Member, it does so only
// while m stands. change changes the stored header, and reports whether there is anything to
// write. Update calls it again if somebody else wrote at the same time, or if the answer was
// lost. After a session time, but not less than a second, it gives up on lost answers, because a
// full disk, for example, stays full.
func Update(ctx context.Context, s backend.Session, election string, m backend.Member, change func(*Header) bool) error {
	return persist(ctx, s, election, m, func(h *backend.Header) (write bool, err error) {
		noted, err := Of(*h)
		if err != nil || !change(&noted) {
			return false, err
		}
		*h = noted.Stored()
		return true, nil
	})
}

// A change changes a header, and reports whether there is anything to write.
type change func(*backend.Header) (write bool, err error)

// persist is Update for a change of what drivers know, which also goes where notes cannot be understood.
func persist(ctx context.Context, s backend.Session, election string, m backend.Member, c change) error {
	enough := time.Now().Add(max(s.TTL(), time.Second))
	passing := func(err error) bool {
		return errors.Is(err, backend.ErrVersion) || errors.Is(err, backend.ErrUnavailable) && time.Now().Before(enough)
	}
	return again.Try(ctx, passing, func() error { return update(ctx, s, election, m, c) })
}

func update(ctx context.Context, s backend.Session, election string, m backend.Member, c change) error {
	r, err := s.Get(ctx, election)
	if err != nil {
		return err
	}
	h, err := backend.ParseHeader(r.Value)
	if err != nil {
		return err
	}
	if write, err := c(&h); err != nil || !write {
		return err
	}
	_, err = s.Put(ctx, election, h.Encode(), &backend.If{Version: r.Version, Member: m})
	return err
}

func raise(to uint64) change {
	return func(h *backend.Header) (bool, error) {
		if h.Fence >= to {
			return false, nil
		}
		// It means a member, which has another token from now on. Not so Resign: a term obeys any number from its first token to its
		// present one, and what an earlier leader was asked by would then be among them.
		if n, err := Of(*h); err == nil {
			if h.Fence < n.Acknowledged && n.Acknowledged <= backend.MaxFence { // beyond that it is no token
				n.Acknowledged += to - h.Fence
			}
			*h = n.Stored()
		}
		h.Fence = to
		return true, nil
	}
}

// Raise raises the fence of an election to at least the given one. If m is not the zero
// Member, it changes the header only while m stands. It tries again as [Update] does, and
// blocks for about five round trips. A fence that is larger than [backend.MaxFence] is a [backend.ErrInvalid].
func Raise(ctx context.Context, s backend.Session, election string, m backend.Member, fence uint64) error {
	if fence > backend.MaxFence {
		return fmt.Errorf("%w fence %d of %s: at most 2^62 = %d is possible, or tokens would wrap; give the largest token that anybody holds, "+
			"and look whether it has a digit too many", backend.ErrInvalid, fence, election, backend.MaxFence)
	}
	keep := func() error {
		if kept := naming.OfElection(election, naming.Fence); kept != "" {
			return persist(ctx, s, kept, backend.Member{}, raise(fence))
		}
		return nil
	}
	// The copy comes first: if the second write fails, Restore raises the fence, which does no
	// harm. It is looked at again in the end: an election that moves in between has its copy elsewhere.
	if err := keep(); err != nil {
		return err
	}
	if err := persist(ctx, s, election, m, raise(fence)); err != nil {
		return err
	}
	return keep()
}

// Restore raises the fence of m's election to the one in its [naming.Fence] record, but only while
// m stands, and only if the election may have been deleted since the record came into being: a
// younger record is not needed, and anybody may have made it. Without such a record, which is the
// common case, it takes one round trip. It does nothing on a backend without records. It fails with
// [backend.ErrVersion] if somebody else wrote at the same time.
func Restore(ctx context.Context, s backend.Session, m backend.Member) error {
	fence, err := Kept(ctx, s, m.Line)
	if err != nil || fence == 0 {
		return err
	}
	return update(ctx, s, m.Line, m, raise(fence))
}

// Kept returns the fence below which [Restore] leaves none; 0 if it changes nothing.
func Kept(ctx context.Context, s backend.Session, election string) (fence uint64, err error) {
	kept := naming.OfElection(election, naming.Fence)
	if kept == "" {
		return 0, nil
	}
	r, err := s.Get(ctx, kept)
	if errors.Is(err, errors.ErrUnsupported) || err == nil && r.Version == backend.Absent {
		return 0, nil // no copy can be kept, or none is
	}
	if err != nil && !errors.Is(err, backend.ErrDenied) {
		return 0, err
	}
	if needed, oerr := s.Outlived(ctx, kept, election); oerr != nil || !needed {
		return 0, oerr
	}
	if err != nil {
		return 0, err
	}
	h, err := backend.ParseHeader(r.Value)
	return h.Fence, err
}
