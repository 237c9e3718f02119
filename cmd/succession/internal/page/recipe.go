package page

import (
	"fmt"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
)

// A kind says what a row of the list is.
type kind string

const (
	kindElection kind = "election" // also a mutex: the lines are the same
	kindLock     kind = "lock"     // a semaphore, or a lock for readers and writers
	kindGroup    kind = "group"
	kindQueue    kind = "queue"
	kindBarrier  kind = "barrier"
	kindShared   kind = "shared" // those who stand are shared members, and nothing says of what
	kindItems    kind = "items"  // pinned members of which nothing says what they are
)

// How the lines of recipes are named; see the packages queue, lock, group and migrate.
const (
	itemsSuffix  = "-items"
	claimsSuffix = "-claims"
	turnSuffix   = "-turn"
	itemInfix    = "-item-"
	marksSuffix  = ".migrate-both"
)

// A head is what was read last of one line: its first member and its header.
type head struct {
	stand  int // how many stand in it
	line   backend.Line
	leader elect.Leader
	read   bool // it has been read
	err    error
	at     time.Time // when somebody stood in it last

	// What the first member looked like, and what the one before it did if nobody stands.
	shared, pinned, barrier bool
}

// note takes the newest first member.
func (h *head) note(l backend.Line, leader elect.Leader) {
	h.line, h.leader, h.read, h.err = l, leader, true, nil
	if len(l.Members) == 0 {
		return
	}
	m := l.Members[0]
	h.shared, h.barrier = m.Shared, strings.HasPrefix(leader.Value, "barrier of ")
	h.pinned = m.Pinned && l.Header.Sealed == "" && l.Header.Migration == (backend.Migration{})
}

// fold makes one row of the lines of each recipe.
func fold(heads map[string]*head) map[string]row {
	rows := make(map[string]row, len(heads))
	for name, h := range heads {
		switch owner, k := ownerOf(name, heads); {
		case k != kindElection:
			rows[owner] = recipeRow(owner, k, heads)
		case strings.HasSuffix(name, marksSuffix): // only says who knows both coordinators
		default:
			if _, made := rows[name]; !made {
				rows[name] = rowOf(name, h)
			}
		}
	}
	return rows
}

// ownerOf returns the recipe that a line belongs to, by the names and the looks of the lines; the
// kind is election for a line of its own.
func ownerOf(name string, heads map[string]*head) (owner string, k kind) {
	if x, ok := strings.CutSuffix(name, itemsSuffix); ok && heads[name].pinned {
		return x, kindQueue
	}
	if x, ok := strings.CutSuffix(name, claimsSuffix); ok && heads[name].shared {
		return x, kindQueue
	}
	if x, ok := strings.CutSuffix(name, turnSuffix); ok {
		if h := heads[x]; h != nil && h.shared {
			return x, kindLock
		}
		if h := heads[x+itemsSuffix]; h != nil && h.pinned || heads[x+claimsSuffix] != nil {
			return x, kindQueue
		}
	}
	for at, rest := 0, name; ; {
		i := strings.Index(rest, itemInfix)
		if i < 0 {
			break
		}
		at += i
		if h := heads[name[:at]]; h != nil && h.shared {
			return name[:at], kindGroup
		}
		at += len(itemInfix)
		rest = name[at:]
	}
	return name, kindElection
}

// recipeRow returns the row of a recipe of several lines.
func recipeRow(name string, k kind, heads map[string]*head) row {
	r := row{Name: name, Kind: k, Mood: quiet}
	stand := func(line string) int {
		if h := heads[line]; h != nil {
			return h.stand
		}
		return 0
	}
	switch k {
	case kindQueue:
		r.Stand = stand(name + itemsSuffix)
		r.State = fmt.Sprintf("%d taken, %d wait", stand(name+claimsSuffix), stand(name+turnSuffix))
	case kindLock:
		r.Stand = stand(name)
		r.State = fmt.Sprintf("%d wait", stand(name+turnSuffix))
	case kindGroup:
		r.Stand = stand(name)
		r.State = "present"
	}
	if h := heads[name]; h != nil && h.err != nil {
		r.State, r.Mood = h.err.Error(), bad
	}
	return r
}

// rowOf returns the row of one line.
func rowOf(name string, h *head) row {
	r := row{Name: name, Kind: kindElection, Stand: h.stand, Mood: quiet}
	switch {
	case h.err != nil:
		r.State, r.Mood = h.err.Error(), bad
	case !h.read:
		r.State = "being read"
	case h.barrier:
		r.Kind, r.State = kindBarrier, "present"
	case h.shared:
		r.Kind, r.State = kindShared, "present"
	case h.pinned:
		r.Kind, r.State = kindItems, "stand"
	default:
		if !h.leader.Vacant() {
			r.Who, r.Token = nameOf(h.leader), h.leader.Token
		}
		r.State, r.Mood = stateOf(h.leader, h.line.Header)
	}
	return r
}

// stateOf says how it stands with the first of an election.
func stateOf(l elect.Leader, h backend.Header) (string, mood) {
	switch {
	case h.Sealed != "":
		return "moved to " + h.Sealed, quiet
	case l.Vacant():
		return "nobody leads", bad
	case l.Pinned && h.Migration.Step != "":
		return "behind a gate", quiet
	case l.Pinned:
		return "closed for ever", bad
	case h.Resign == l.Token:
		return "asked to resign", busy
	case l.Acknowledged:
		return "at work", good
	}
	return "leads", good
}
