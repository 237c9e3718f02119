package postgres

import (
	"strconv"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/backend/kit/clock"
)

// An observer is what a session has seen of others in this life of the server. Only the goroutine
// that sends the heartbeats uses it.
//
// Each session looks at some others, whether it stands in a line or not, so every session is
// observed as long as there are others; the package comment says which. If most of the observed
// ones are silent, it looks at more, until none is silent and half of them are known to live: if a
// thousand have crashed at once, they must not be ended a few at a time, each after a session time.
type observer struct {
	life  string
	since clock.Instant // when the first answer of this life came
	seen  map[string]sight
	wide  int
	gone  int  // were silent for so long that they were ended, since the last answer
	alarm bool // one is silent, or may be
}

// A sight is a number that was seen of a session.
type sight struct {
	kit.Silence
	beat  int64
	ttl   time.Duration
	lives bool // the number has changed since the session was first seen
}

const (
	narrow = 16
	widest = 1 << 12
)

// window is how many others of the ring to look at.
func (o *observer) window() int { return max(narrow, o.wide) }

// see notes what an answer says, which came at now: the present life, and of some others "ID NUMBER
// TTL", with commas between. ttl is that of this session.
func (o *observer) see(now clock.Instant, ttl time.Duration, life, others string) {
	if life != o.life || o.seen == nil {
		o.life, o.since, o.seen = life, now, make(map[string]sight)
	}
	next := make(map[string]sight)
	silent, unknown := 0, 0
	for part := range strings.SplitSeq(others, ",") {
		id, beat, its, ok := parseOther(part)
		if !ok {
			continue
		}
		at, known := o.seen[id]
		if !known || at.beat != beat {
			at = sight{Silence: kit.Silence{Since: now}, beat: beat, ttl: its, lives: known}
		} else if now.Sub(at.Since) > its*3/4 { // some send two heartbeats in their session time
			silent++
		}
		if !at.lives {
			unknown++
		}
		next[id] = at
	}
	o.seen = next // other sessions observe those that have left the window
	silent += o.gone
	all := len(next) + o.gone // whose session time is shorter than that from one answer to the next may be ended between the two
	o.gone = 0
	switch {
	case silent > 0 && silent >= all-silent:
		o.wide = min(8*len(next), widest)
	case silent == 0 && 2*unknown <= all: // where sessions come and go, some are always new
		o.wide = narrow
	}
	o.alarm = silent > 0 || o.wide > narrow
}

// parseOther reads "ID NUMBER TTL", with the TTL in ms.
func parseOther(text string) (id string, beat int64, ttl time.Duration, ok bool) {
	f := strings.Fields(text)
	if len(f) != 3 || len(f[0]) != 36 {
		return "", 0, 0, false
	}
	beat, err := strconv.ParseInt(f[1], 10, 64)
	ms, err2 := strconv.ParseInt(f[2], 10, 32)
	if err != nil || err2 != nil || ms <= 0 {
		return "", 0, 0, false
	}
	return f[0], beat, time.Duration(ms) * time.Millisecond, true
}

// over reports whether this life has been observed for long enough that a member may be first in
// its era. held is the longest session time; 0 says that it was known before.
func (o *observer) over(now clock.Instant, held time.Duration) bool {
	return held > 0 && now.Sub(o.since) >= kit.SilentFor(held)
}

// due returns the sessions whose time has come, and how long it is until the next one's time. If
// one is still there a quarter of its session time later, its time has come again.
func (o *observer) due(now clock.Instant, most time.Duration) (ids, beats []string, next time.Duration) {
	next = most
	for id, at := range o.seen {
		left, due := at.Due(now, at.ttl)
		next = min(next, left)
		if due {
			ids, beats = append(ids, id), append(beats, strconv.FormatInt(at.beat, 10))
			o.seen[id] = at
		}
	}
	o.gone += len(ids)
	return ids, beats, next
}

// reap ends the sessions that have been silent for long enough, and returns when to look again, at
// the latest at next.
func (s *session) reap(next time.Time) time.Time {
	now := time.Now()
	ids, beats, left := s.observer.due(clock.Now(), next.Sub(now))
	if ids != nil {
		life := s.observer.life
		s.b.o.Logger.Info("ending sessions without heartbeats", "sessions", len(ids))
		s.Go(func() {
			if err := s.tell(s.Context(), "reap", "{"+strings.Join(ids, ",")+"}", "{"+strings.Join(beats, ",")+"}", life); err != nil {
				s.b.o.Logger.Warn("sessions without heartbeats were not ended", "err", err)
			}
		})
	}
	return now.Add(left)
}
