package composite

import (
	"sync/atomic"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/along"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// A candidacy is what the caller sees as one member: a member on one coordinator, or one on each.
// The caller knows it by the first of them.
type candidacy struct {
	line, value string
	as          backend.Member // as the caller knows it

	turn lock // of Ahead, Leave and the cutover

	writing lock             // of a guarded write, or the seal
	sealAt  atomic.Int64     // the version of From's record, for a seal that may have been set, or may be still; 0 for none; written under writing
	guarded [2]along.Guarded // the lists of both coordinators, as far as known; see guarded.go

	s  *session // its lock guards st
	st standing
}

// A standing says where a candidacy stands.
type standing struct {
	state   state
	at      [2]backend.Member // the zero Member where it has none
	marks   [2]backend.Member // see mark.go
	leads   [2]bool           // by which coordinators it leads: their deadlines are the term's
	until   time.Time         // until when it tries to get a member on To; zero if it does not
	aborted string            // the ID of the migration that was aborted, in fromOnly and outdated
	sealed  header.Header     // From's record as its seal has written it
	since   time.Time         // when it has sealed From
	open    bool              // the gate has gone since then
}

// A state says which members a candidacy needs. It begins in needsBoth, or in toOnly if the
// election is on To already.
//
//	           leave          left          begunAgain
//	needsBoth ──────▶ leaving ──────▶ fromOnly ──────▶ outdated
//	 │    │                              ▲
//	 │    └─lose─▶ lostTo ─────left──────┘
//	 │                │
//	seal             seal
//	 ▼                ▼
//	toOnly ──lose─▶ sealedLostTo
type state uint8

const (
	needsBoth    state = iota // it waits on From; when it is first there it needs a member on To, and then leads by both
	leaving                   // the migration was aborted, and it leaves To
	fromOnly                  // the migration was aborted: it leads by From alone
	outdated                  // like fromOnly, but another migration was begun: it stands until its leader leaves
	toOnly                    // it joined on To, or has sealed From
	lostTo                    // its member on To has gone, and it has to give up its member on From
	sealedLostTo              // its member on To has gone after it has sealed From
)

// newCandidacy returns the candidacy of a member that s has joined on one coordinator.
func (s *session) newCandidacy(line, value string, sd protocol.Side, m backend.Member) *candidacy {
	c := &candidacy{line: line, value: value, as: tag(sd, m), turn: newLock(), writing: newLock(), s: s}
	c.st.at[sd] = m
	if sd == protocol.To {
		c.st.state = toOnly
	}
	return c
}

// now returns where the candidacy stands.
func (c *candidacy) now() standing {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.st
}

// change changes where the candidacy stands, by one of the methods below.
func (c *candidacy) change(f func(*standing)) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	f(&c.st)
	c.s.needsChanged()
}

// side returns the coordinator that says where the candidacy stands.
func (st standing) side() protocol.Side {
	if st.state == toOnly || st.state == sealedLostTo {
		return protocol.To
	}
	return protocol.From
}

// hasLost reports whether the candidacy's member on To has gone.
func (st standing) hasLost() bool { return st.state == lostTo || st.state == sealedLostTo }

// isFromOnly reports whether the candidacy leads by From alone once it is first there.
func (st standing) isFromOnly() bool { return st.state == fromOnly || st.state == outdated }

// hasSealed reports whether the candidacy has sealed From.
func (st standing) hasSealed() bool {
	return st.side() == protocol.To && st.at[protocol.From].Key != ""
}

// gone is for a candidacy that has removed its member on one coordinator. If that was From, the
// whole candidacy is forgotten.
func (st *standing) gone(sd protocol.Side) {
	st.leads[sd] = false
	if sd == protocol.To {
		st.at[sd] = backend.Member{}
	}
}

// lose is for a candidacy whose member on To has gone, unless it leaves To itself.
func (st *standing) lose() {
	switch {
	case st.at[protocol.To].Key == "":
	case st.state == needsBoth:
		st.state = lostTo
	case st.state == toOnly:
		st.state = sealedLostTo
	}
}

// leave is for a candidacy that is about to leave To, and to go on by From alone.
func (st *standing) leave() {
	if st.state == needsBoth {
		st.state = leaving
	}
}

// left is for a candidacy that has left To because the migration with the ID was aborted.
func (st *standing) left(id string) {
	st.aborted = id
	if st.state != outdated {
		st.state = fromOnly
	}
}

// begunAgain is for a candidacy in fromOnly when another migration was begun, for which it has
// to join anew.
func (st *standing) begunAgain() { st.state = outdated }

// seal is for a candidacy that has sealed From and leads by To alone. From's record is h since
// then.
func (st *standing) seal(h header.Header) {
	st.sealed = h
	if st.since.IsZero() {
		st.since = time.Now()
	}
	st.leads = [2]bool{protocol.To: true}
	if st.state == lostTo {
		st.state = sealedLostTo
	} else {
		st.state = toOnly
	}
}

// mayBeGated reports whether the candidacy has sealed From, and has not seen yet that the gate has gone.
func (st standing) mayBeGated() bool { return st.hasSealed() && !st.open }

// try is for a candidacy that is first on From: it tries to get a member on To for so long. One that leads by both has the
// time anew with each look.
func (st *standing) try(patience time.Duration) {
	if st.until.IsZero() || st.leads[protocol.To] {
		st.until = time.Now().Add(patience)
	}
}

// succeed is for a candidacy that is first on From, and leads: by both unless it needs From
// alone.
func (st *standing) succeed() {
	st.until = time.Time{}
	if st.state == leaving { // it could not leave To, and another migration was begun meanwhile
		st.state = needsBoth
	}
	st.leads = [2]bool{true, !st.isFromOnly()}
}
