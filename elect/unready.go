package elect

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/naming"
)

// A candidate that is not ready says so in a record beside the election E, named after the position of its
// member: E.unready/POSITION, with the reason. It writes and deletes the record only when its readiness
// changes, on condition that its member stands. So a record whose member has gone is left over from a
// candidate that has crashed, and whoever lists the records may delete it.
//
// Nothing tells that a record of a folder has gone. So who becomes ready also writes the record E.unready,
// the bell. Who stands first and cannot lead watches it.
const unreadySuffix = naming.Unready

// unreadyFolder returns the name of the bell, and of the folder of the records. It returns "" if the name
// of the election is too long for them: then nobody can say that it is not ready.
func unreadyFolder(election string) string {
	if len(election)+len(unreadySuffix)+len("/18446744073709551615") > backend.MaxName {
		return ""
	}
	return election + unreadySuffix
}

// A set of the positions of members that have said that they are not ready.
type positions map[uint64]bool

// unready reads which members have said that they are not ready. A backend without records knows none.
func unready(ctx context.Context, s backend.Session, election string) (positions, error) {
	folder := unreadyFolder(election)
	if folder == "" {
		return nil, nil
	}
	names, err := s.List(ctx, folder)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, err
	}
	out := make(positions, len(names))
	for _, name := range names {
		if pos, ok := naming.Position(strings.TrimPrefix(name, folder+"/")); ok {
			out[pos] = true
		}
	}
	return out, nil
}

// sweep deletes the records of members that do not stand in the line any more, which must have been read
// later than the records. It does what it may and can.
func (p positions) sweep(ctx context.Context, s backend.Session, election string, line backend.Line) {
	stands := make(positions, len(line.Members))
	for _, m := range line.Members {
		stands[m.Position] = true
	}
	for pos := range p {
		if !stands[pos] {
			delete(p, pos)
			_ = s.Delete(ctx, unreadyRecord(election, pos), nil)
		}
	}
}

func unreadyRecord(election string, pos uint64) string {
	return unreadyFolder(election) + "/" + strconv.FormatUint(pos, 10)
}

// maxReason is the longest reason in a record, in bytes.
const maxReason = 1 << 10

// whyUnready returns the reason that the member with the position has given, or "" if it is ready.
func whyUnready(ctx context.Context, s backend.Session, election string, pos uint64) (string, error) {
	r, err := s.Get(ctx, unreadyRecord(election, pos))
	if err != nil || r.Version == backend.Absent {
		return "", err
	}
	return reasonOf(r.Value), nil
}

// reasonOf returns the reason in a record.
func reasonOf(value []byte) string {
	why := strings.ToValidUTF8(string(value[:min(len(value), maxReason)]), string(utf8.RuneError))
	return cmp.Or(why, "it does not say why")
}

// recordReadiness keeps the record of a member as its readiness is, until ctx ends.
func (st *standing) recordReadiness(ctx context.Context) {
	wait := backoff.New(ctx)
	for ctx.Err() == nil {
		changed, why := st.ready.now()
		if (why != nil) != st.recorded {
			if err := st.record(ctx, why); err != nil {
				if errors.Is(err, backend.ErrDenied) {
					st.e.o.Logger.Warn("cannot say that this one is not ready, or is ready again", "key", st.m.Key, "err", err)
				}
				if !passing(err) || wait.Sleep(ctx) != nil {
					return // the member has gone, there are no records, or they are denied
				}
				continue
			}
			wait.Reset()
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// record writes that the member is not ready, or if why is nil that it is.
func (st *standing) record(ctx context.Context, why error) error {
	e := st.e
	name, own := unreadyRecord(e.name, st.m.Position), &backend.If{Member: st.m}
	if why == nil {
		if err := st.s.Delete(ctx, name, nil); err != nil {
			return err
		}
		if _, err := st.s.Put(ctx, unreadyFolder(e.name), nil, nil); err != nil {
			return err // and all of it is done again: whoever waits for the bell must hear it
		}
		st.recorded = false
		e.o.Logger.Info("ready", "key", st.m.Key)
		return nil
	}
	reason := why.Error()
	if _, err := st.s.Put(ctx, name, []byte(reason[:min(len(reason), maxReason)]), own); err != nil {
		return err
	}
	st.recorded = true
	e.o.Logger.Warn("not ready", "key", st.m.Key, "err", why)
	return nil
}
