package consul

import (
	"context"
	"errors"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/again"
)

// WatchPlace blocks until m stands otherwise than p says; see [backend.Session]. It waits with blocking
// queries; see [placeWatch]. The session notices the rest for all waiters: that m has gone while it waits, and
// changes that a query has missed; see [session.guard].
func (s *session) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) (err error) {
	if err := kit.BeforeWatch(ctx, p); err != nil {
		return err
	}
	w, err := s.newPlaceWatch(m, p)
	if err != nil {
		return err
	}
	if p.First {
		ctx, w.lost = context.WithCancelCause(ctx)
		defer w.lost(nil)
		begun := time.Now()
		defer func() { s.watched(ctx, w.own, m, begun, err) }()
	}
	ctx = urgent(ctx)
	s.enlist(&w.waiter)
	defer s.delist(&w.waiter)
	defer w.member.stop()
	defer w.header.stop()
	for {
		if changed, err := w.ask(ctx); err != nil {
			return err
		} else if changed {
			return again.Ahead(ctx, s, m, p)
		}
		look := false
		select {
		case <-w.member.ended():
			look = w.memberAnswered()
		case <-w.header.ended():
			w.headerAnswered()
		case <-w.member.pause:
			w.member.pause = nil
		case <-w.header.pause:
			w.header.pause = nil
		case <-w.wake:
			look = true
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if look {
			if stays, err := w.lookAgain(ctx); !stays {
				return err
			}
		}
	}
}

// A placeWatch is what a call of WatchPlace waits for.
type placeWatch struct {
	waiter
	s *session
	p *backend.Place // where m stood at the last look

	// member is the key of the member in front or, if m is first, its own key.
	//
	// If this session has joined the member in front, m needs no query, unless that member may be first
	// in line. The session knows when it removes the member itself; if that is a leader, it finds out
	// by its own call that an operator has removed it; and if an operator removes it from the middle of
	// the line, the guard notices soon enough. So one process can have many waiters.
	member poll
	index  uint64 // of the last change of that key, as far as known

	// header is polled if m is first or behind a pinned member. Nobody else needs it: on Consul no other library
	// stands in our lines.
	header poll
	quiet  backoff.Backoff // the pauses while there is no header; see [session.Watch]
}

func (s *session) newPlaceWatch(m backend.Member, p *backend.Place) (*placeWatch, error) {
	w := &placeWatch{waiter: waiter{m: m, watched: p.Ahead, wake: make(chan struct{}, 1)}, s: s, p: p}
	if p.First {
		w.watched = m
	}
	var err error
	if w.own, err = s.b.o.memberPath(m); err != nil {
		return nil, err
	}
	if w.key, err = s.b.o.memberPath(w.watched); err != nil {
		return nil, err
	}
	if p.First || !s.owns(w.watched) || s.mayBeHeir(w.own, m.Position) {
		w.member = s.newPoll(topic{key: w.key, member: w.watched.Position})
		w.index = s.changeOf(w.key, w.watched.Position)
	}
	if p.First || p.Ahead.Pinned {
		w.header, w.quiet = s.newPoll(topic{key: s.b.o.key(m.Line)}), s.b.o.quiet()
	}
	return w, nil
}

// ask sends the queries that are due. It reports true if the header is already another one, or cannot be understood.
func (w *placeWatch) ask(ctx context.Context) (changed bool, err error) {
	if w.member.due() {
		w.member.send(w.index, true)
	}
	if w.header.due() {
		r, index, err := w.s.get(ctx, w.m.Line)
		if err != nil {
			return false, err
		}
		if now, err := backend.ParseHeader(r.Value); err != nil || now != w.p.Header {
			return true, nil
		}
		w.header.send(index, r.Version != backend.Absent)
	}
	return false, nil
}

// memberAnswered reports whether the place may be another one, by what the query for the member says.
func (w *placeWatch) memberAnswered() bool {
	q := w.member.answer()
	switch {
	case q == nil:
		return w.member.denied // then the look fails, and says why
	case q.proves(w.watched.Position):
		return true
	case q.pair == nil:
		return false
	}
	w.index = max(w.index, q.pair.ModifyIndex)
	return !w.p.First && q.pair.Session == "" && !w.p.Ahead.Pinned // the one in front was pinned
}

// headerAnswered only pauses if there is no header, as ask reads it before the next query.
func (w *placeWatch) headerAnswered() {
	if q := w.header.answer(); q != nil && q.pair == nil {
		w.header.pause = time.After(w.quiet.Next())
	}
}

// lookAgain reports whether m stands as it stood at the last look. If not, it sets the place.
func (w *placeWatch) lookAgain(ctx context.Context) (stays bool, err error) {
	// If m has left, it must not send requests while the next one needs the connections.
	if w.s.owns(w.m) && w.s.hasLeft(w.own, w.m.Position) {
		return false, backend.ErrNotMember
	}
	now, err := w.s.Ahead(ctx, w.m)
	if err != nil {
		return false, err
	}
	a, b := now.Ahead, w.p.Ahead
	if now.First {
		stays = w.p.First && now.Header == w.p.Header
	} else {
		stays = !w.p.First && a.Key == b.Key && a.Position == b.Position && a.Pinned == b.Pinned
	}
	if !stays {
		*w.p = now
	}
	return stays, nil
}

// mayBeHeir reports whether, as far as known, at most one other member stands in front.
func (s *session) mayBeHeir(key string, position uint64) bool {
	f := s.frontAt(key, position)
	return f == nil || len(f.near) <= 1 && f.beyond == 0
}

// A poll waits for changes of one topic with one blocking query after another, and a pause after one that failed. The
// zero poll waits for nothing.
type poll struct {
	s     *session
	on    topic
	query *query           // under way, or nil
	pause <-chan time.Time // before the next query, or nil
	wait  backoff.Backoff

	denied bool // the last query was
}

func (s *session) newPoll(on topic) poll { return poll{s: s, on: on, wait: s.b.o.patience()} }

// due reports whether the next query is to be sent.
func (l *poll) due() bool { return l.s != nil && l.query == nil && l.pause == nil }

// send begins a query; see [session.attach].
func (l *poll) send(index uint64, stood bool) {
	l.query = l.s.attach(l.on, max(index, 1), stood) // 0 would not block
}

// ended is closed when the query has ended. It is nil if there is none.
func (l *poll) ended() <-chan struct{} { return l.query.ended() }

// answer returns the query that has ended, or nil if it failed.
func (l *poll) answer() *query {
	q := l.query
	l.stop()
	l.denied = errors.Is(q.err, backend.ErrDenied)
	if q.err != nil || q.unheard {
		l.pause = time.After(l.wait.Next())
		return nil
	}
	if q.pair != nil {
		l.wait.Reset()
	}
	return q
}

// stop ends the waiting for the query under way, if there is one.
func (l *poll) stop() {
	if l.query != nil {
		l.s.detach(l.query)
		l.query = nil
	}
}
