package composite

import (
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// A state is how an entry stands.
//
//	            leave            left           begunAgain
//	needsBoth ─────────▶ leaving ────▶ fromOnly ──────────▶ outdated
//	   │  │                              ▲
//	   │  │ lose                         │ left
//	   │  └──────▶ lostTo ───────────────┘
//	   │             │ seal
//	   │ seal        ▼
//	   │          sealedLostTo
//	   ▼             ▲ lose
//	 toOnly ─────────┘
//
// An entry begins in needsBoth, or in toOnly where the election is on To already.
type state uint8

const (
	needsBoth    state = iota // it waits on From; when it is first there it needs a member on To, and then leads by both
	leaving                   // the migration was aborted, and it leaves To
	fromOnly                  // the migration was aborted: it leads by From alone
	outdated                  // as fromOnly, and another migration was begun: it stands until its leader leaves
	toOnly                    // it joined on To, or has sealed From
	lostTo                    // its member on To has gone, and it has to give up that on From
	sealedLostTo              // its member on To has gone after it has sealed From
)

// An entry is what a session has joined as one member: a member on one coordinator or one
// on each. The caller knows it by the first of them.
type entry struct {
	line, value string
	as          backend.Member // as the caller knows it

	turn     lock // of Ahead, Leave and the cutover
	sealSent bool // its seal may be under way, so it may not leave From by its own hand; guarded by turn

	writing lock // of a guarded write, or the seal

	giveUp sync.Once // for giving the entry up behind the caller's back

	mu      *sync.Mutex // of the session
	state   state
	at      [2]backend.Member // the zero Member where it has none
	marks   [2]backend.Member // see mark.go
	leads   [2]bool           // by which coordinators it leads: their deadlines are the term's
	until   time.Time         // until when it tries to get a member on To; zero where it does not
	aborted string            // the ID of the migration that was aborted, in fromOnly and outdated
}

// newEntry returns the entry of a member that s has joined on one coordinator.
func (s *session) newEntry(line, value string, sd protocol.Side, m backend.Member) *entry {
	e := &entry{line: line, value: value, as: tag(sd, m), turn: newLock(), writing: newLock(), mu: &s.mu}
	e.at[sd] = m
	if sd == protocol.To {
		e.state = toOnly
	}
	return e
}

// sideLocked returns the coordinator that says where the entry stands. The caller holds mu.
func (e *entry) sideLocked() protocol.Side {
	if e.state == toOnly || e.state == sealedLostTo {
		return protocol.To
	}
	return protocol.From
}

func (e *entry) side() protocol.Side {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sideLocked()
}

func (e *entry) now() state {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state
}

// isLost reports whether the entry's member on To has gone.
func (e *entry) isLost() bool {
	now := e.now()
	return now == lostTo || now == sealedLostTo
}

// isFromOnly reports whether the entry leads by From alone once it is first there.
func (e *entry) isFromOnly() bool {
	now := e.now()
	return now == fromOnly || now == outdated
}

// hasSealed reports whether the entry has sealed From.
func (e *entry) hasSealed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sideLocked() == protocol.To && e.at[protocol.From].Key != ""
}

func (e *entry) member(sd protocol.Side) backend.Member {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.at[sd]
}

// joinedTo notes the entry's member on To.
func (e *entry) joinedTo(m backend.Member) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.at[protocol.To] = m
}

// gone notes that the entry has removed its member on one coordinator. When it has
// removed that on From, it is forgotten as a whole.
func (e *entry) gone(sd protocol.Side) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.leads[sd] = false
	if sd == protocol.To {
		e.at[sd] = backend.Member{}
	}
}

// lead notes by which coordinators the entry leads.
func (e *entry) lead(from, to bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.leads = [2]bool{from, to}
}

func (e *entry) isLeader() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leads != [2]bool{}
}

// lose notes that the entry's member on To has gone, unless the entry leaves To itself.
func (e *entry) lose() {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.at[protocol.To].Key == "":
	case e.state == needsBoth:
		e.state = lostTo
	case e.state == toOnly:
		e.state = sealedLostTo
	}
}

// leave notes that the entry is about to leave To, and to go on by From alone.
func (e *entry) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state == needsBoth {
		e.state = leaving
	}
}

// left notes that the entry has left To, as the migration with the ID was aborted.
func (e *entry) left(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.aborted = id
	if e.state != outdated {
		e.state = fromOnly
	}
}

// begunAgain notes that another migration was begun, for which the entry has to join anew.
func (e *entry) begunAgain() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state = outdated
}

// seal notes that the entry has sealed From, and leads by To alone.
func (e *entry) seal() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.leads = [2]bool{protocol.To: true}
	if e.state == lostTo {
		e.state = sealedLostTo
	} else {
		e.state = toOnly
	}
}

// tries returns until when the entry, which is first on From, tries to get a member on To.
func (e *entry) tries(patience time.Duration) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.until.IsZero() {
		e.until = time.Now().Add(patience)
	}
	return e.until
}

// succeeds notes that the entry, which is first on From, leads, by both unless it needs
// From only.
func (e *entry) succeeds() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.until = time.Time{}
	if e.state == leaving { // it could not, and another migration was begun meanwhile
		e.state = needsBoth
	}
	e.leads = [2]bool{true, e.state != fromOnly && e.state != outdated}
}
