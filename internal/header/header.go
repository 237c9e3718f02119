// Package header changes the record of an election, and keeps its fence where the
// election's deletion does not reach it.
//
// The record of an election says, among other things, by how much its tokens are above
// the positions of its members. That fence was raised because positions alone would let
// tokens fall: after a restore of the coordinator, or after a migration from one whose
// positions were larger. An operator who deletes the election, its record and its folder,
// deletes the fence as well. So whoever raises it first writes it to a record beside the
// election, and a candidate that has joined raises it anew where it has become smaller.
// Every leader after a deletion has joined after it: the deletion took the members too.
package header

import (
	"context"
	"errors"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/backoff"
)

// Suffix makes the name of the record that keeps an election's fence of the election's.
const Suffix = ".fence"

// FenceRecord returns the name of the record that keeps the fence of an election; "" for
// an election whose name leaves no room for it, whose deletion takes the fence along.
func FenceRecord(election string) string {
	if len(election)+len(Suffix) > backend.MaxName {
		return ""
	}
	return election + Suffix
}

// Update changes the record of an election, on condition that m, if any, still stands. It
// tries again when somebody else wrote at the same time, or when the answer was lost:
// change is a function of what is stored, and reports whether there is anything to write.
// After a session time without an answer it gives up: a disk that is full stays so.
func Update(ctx context.Context, s backend.Session, election string, m backend.Member, change func(*backend.Header) bool) error {
	wait := backoff.New(ctx)
	enough := time.Now().Add(max(s.TTL(), time.Second))
	for {
		err := update(ctx, s, election, m, change)
		switch {
		case errors.Is(err, backend.ErrVersion):
		case !errors.Is(err, backend.ErrUnavailable), time.Now().After(enough):
			return err
		}
		if err := wait.After(ctx, err); err != nil {
			return err
		}
	}
}

func update(ctx context.Context, s backend.Session, election string, m backend.Member, change func(*backend.Header) bool) error {
	r, err := s.Get(ctx, election)
	if err != nil {
		return err
	}
	h, err := backend.ParseHeader(r.Value)
	if err != nil || !change(&h) {
		return err
	}
	_, err = s.Put(ctx, election, h.Encode(), &backend.If{Version: r.Version, Member: m})
	return err
}

func raise(to uint64) func(*backend.Header) bool {
	return func(h *backend.Header) bool {
		if h.Fence >= to {
			return false
		}
		h.Fence = to
		return true
	}
}

// Raise raises the fence of an election to at least the given one, on condition that m, if
// any, still stands. It tries again as [Update] does, and blocks for about four round
// trips.
func Raise(ctx context.Context, s backend.Session, election string, m backend.Member, fence uint64) error {
	// The kept one first: a fence that is only kept is restored, to no harm.
	if kept := FenceRecord(election); kept != "" {
		if err := Update(ctx, s, kept, backend.Member{}, raise(fence)); err != nil {
			return err
		}
	}
	return Update(ctx, s, election, m, raise(fence))
}

// Restore raises the fence of m's election to the one that is kept, on condition that m
// still stands. Without a kept one, which is the common case, it takes one round trip; a
// backend without records has none. It fails with [backend.ErrVersion] where somebody
// else wrote at the same time.
func Restore(ctx context.Context, s backend.Session, m backend.Member) error {
	kept := FenceRecord(m.Line)
	if kept == "" {
		return nil
	}
	r, err := s.Get(ctx, kept)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil // nobody could keep one
	}
	if err != nil {
		return err
	}
	h, err := backend.ParseHeader(r.Value)
	if err != nil || h.Fence == 0 {
		return err
	}
	return update(ctx, s, m.Line, m, raise(h.Fence))
}
