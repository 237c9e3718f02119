package page

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/naming"
)

// A kind says what a row of the list is.
type kind string

const (
	kindElection  kind = kind(naming.Election) // also a mutex: the lines are the same
	kindSemaphore kind = kind(naming.Semaphore)
	kindGroup     kind = kind(naming.Group)
	kindQueue     kind = kind(naming.Queue)
	kindBarrier   kind = kind(naming.Barrier)
	kindShared    kind = "shared" // those who stand are shared members, and nothing says of what
	kindItems     kind = "items"  // pinned members of which nothing says what they are
)

// suffixes are those of the lines of recipes. The row of a recipe has the name of its first line as
// its address.
var suffixes = func() map[kind][]string {
	all := make(map[kind][]string)
	for _, r := range naming.Table {
		switch k := kind(r.Owner); k {
		case kindQueue, kindSemaphore, kindGroup, kindBarrier:
			if r.Use != naming.Record && r.Next == "" {
				all[k] = append(all[k], r.Suffix)
			}
		}
	}
	return all
}()

// A recipe is what is a row: one of several lines, or a line of its own.
type recipe struct {
	kind kind
	name string
}

// lines returns the lines of the recipe, but for the items of a group.
func (r recipe) lines() (all []string) {
	for _, suffix := range suffixes[r.kind] {
		all = append(all, r.name+suffix)
	}
	if len(all) == 0 {
		all = []string{r.name}
	}
	return all
}

// stands reports whether one of the lines looks as it does in a recipe, and not in an election: it
// has shared members, or items.
func (r recipe) stands(heads map[string]*head) bool {
	return slices.ContainsFunc(r.lines(), func(line string) bool {
		h := heads[line]
		return h != nil && (h.shared || h.pinned && strings.HasSuffix(line, naming.ItemsOf))
	})
}

// A head is what was read last of one line: its first member and its header.
type head struct {
	stand int // how many stand in it
	line  header.Line
	now   elect.State
	read  bool // it has been read
	stood bool // somebody has stood in it since it is looked at
	err   error
	at    time.Time // when somebody stood in it last, or it had a header or a history

	told    []operate.Past  // its history, if that has been read
	toldAt  backend.Version // of the record of told
	unready uint64          // the position of the one who was first and has said that it is not ready; 0 if it has not
	since   time.Time       // when the page has seen this leader, or nobody, for the first time; zero if it was so already then

	// What the first member looked like, and what the one before it did if nobody stands.
	shared, pinned bool
}

// note takes the newest first member.
func (h *head) note(l header.Line, now elect.State) {
	if h.read && (!SameTerm(h.now.Leader, now.Leader) || h.now.Vacant() != now.Vacant()) {
		h.since = time.Now()
	}
	h.line, h.now, h.read, h.err = l, now, true, nil
	if len(l.Members) == 0 {
		return
	}
	h.stood = true
	m := l.Members[0]
	h.shared = m.Shared
	h.pinned = m.Pinned && !now.Paused && l.Header.Sealed == "" && l.Header.Migration == (header.Migration{})
}

// blank reports whether nothing says that this is the line of anything: nobody has stood in it, and it has
// no header.
func (h *head) blank() bool {
	return h.read && h.err == nil && !h.stood && h.line.Version == backend.Absent
}

// waits reports whether it looks as if the first in the line leads nothing, and waits for what a recipe gives it: an item, a slot or
// a task. While there is none of these, nothing else tells such a line from that of an election.
func (h *head) waits(line string) bool {
	return h.line.Header.Acknowledged == 0 && len(h.told) == 0 &&
		slices.ContainsFunc([]string{naming.Turn, naming.Waiting, naming.Idle}, func(suffix string) bool { return strings.HasSuffix(line, suffix) })
}

// fold makes one row of the lines of each recipe. A line that was only asked for is left out if a recipe
// has that name.
func fold(heads map[string]*head) map[string]row {
	rows := make(map[string]row, len(heads))
	for line, h := range heads {
		switch r := recipeOf(line, heads); {
		case isBeside(line):
		case r.kind == kindElection && h.blank() && namesake(line, heads) != r:
		case r.kind == kindElection:
			rows[line] = rowOf(line, h)
		default:
			row := r.row(heads)
			rows[row.Line] = row
		}
	}
	return rows
}

// isBeside reports whether the name is that of a line or record which an election or a migration has beside it.
func isBeside(name string) bool {
	_, _, kept := naming.Kept(name)
	return kept
}

// recipeOf returns the recipe that a line belongs to, by its name and the looks of the recipe's lines;
// the kind is election for a line of its own.
func recipeOf(line string, heads map[string]*head) recipe {
	for k, all := range suffixes {
		for _, suffix := range all {
			if name, ok := strings.CutSuffix(line, suffix); ok && (recipe{k, name}).stands(heads) {
				return recipe{k, name}
			}
		}
	}
	for at := range line { // a name and an item may have the infix too
		if r := (recipe{kindGroup, line[:at]}); strings.HasPrefix(line[at:], naming.Item) && r.stands(heads) {
			return r
		}
	}
	return recipe{kindElection, line}
}

// namesake returns the recipe with lines of its own that has the name; an election, if there is none.
func namesake(name string, heads map[string]*head) recipe {
	for _, k := range slices.Sorted(maps.Keys(suffixes)) {
		if r := (recipe{k, name}); r.stands(heads) {
			return r
		}
	}
	return recipe{kindElection, name}
}

// row returns the row of a recipe that has lines of its own.
func (r recipe) row(heads map[string]*head) row {
	lines := r.lines()
	stand := func(i int) int {
		if h := heads[lines[i]]; h != nil {
			return h.stand
		}
		return 0
	}
	out := row{Name: r.name, Line: lines[0], Kind: r.kind, Stand: stand(0), State: "present", Mood: quiet}
	switch r.kind {
	case kindQueue:
		out.State = fmt.Sprintf("%d taken, %d wait", stand(1), stand(2))
	case kindSemaphore:
		out.State = fmt.Sprintf("%d wait", stand(1))
	}
	if h := heads[lines[0]]; h != nil && h.err != nil {
		out.State, out.Mood = ui.OneLine(h.err.Error()), bad
	}
	return out
}

// rowOf returns the row of one line.
func rowOf(name string, h *head) row {
	r := row{Name: name, Line: name, Kind: kindElection, Stand: h.stand, Mood: quiet}
	switch {
	case h.err != nil:
		r.State, r.Mood = ui.OneLine(h.err.Error()), bad
	case !h.read:
		r.State = "being read"
	case h.shared:
		r.Kind, r.State = kindShared, "present"
	case h.pinned:
		r.Kind, r.State = kindItems, "stand"
	case h.now.Paused:
		r.State, r.Mood = fmt.Sprintf("paused by %s: %s", h.now.Gate.ID, h.now.Gate.Value), busy
	default:
		r.Who, r.Token = nameOf(h.now.Leader.Candidate), h.now.Leader.Token
		r.State, r.Mood = h.state()
		r.Since = h.began()
	}
	return r
}

const (
	// An election in which flaps terms or more have begun within flapSpan flaps: more than a rolling restart makes.
	flaps    = 6
	flapSpan = 5 * time.Minute
)

// state says how it stands with an election, and whether that is trouble.
func (h *head) state() (string, mood) {
	s, m := stateOf(h.now, h.line.Header)
	last := h.last()
	switch {
	case m == quiet || h.now.Gate.Key != "":
	case h.flapping() >= flaps:
		return fmt.Sprintf("flaps: %d terms in %d min", h.flapping(), flapSpan/time.Minute), bad
	case h.now.Vacant() && last != nil:
		s += "; last: " + last.ID
		if last.Why == elect.ErrResigned.Error() && h.line.Header.Acknowledged < last.Token {
			return "free; last: " + last.ID, quiet // a lock, or a job that is done
		}
	case h.unready != 0 && len(h.line.Members) > 0 && h.unready == h.line.Members[0].Position:
		return s + ", not ready", bad
	}
	return s, m
}

// last returns the newest term that the history tells of; nil if it tells of none.
func (h *head) last() *operate.Past {
	if len(h.told) == 0 {
		return nil
	}
	return &h.told[len(h.told)-1]
}

// flapping returns how many terms have begun within flapSpan, as leaders have written down.
func (h *head) flapping() (n int) {
	for _, p := range slices.Backward(h.told) {
		if time.Since(p.Began) > flapSpan {
			break
		}
		n++
	}
	return n
}

// began returns since when it is as it is, as the leader has written down or the page has seen; 0 if neither is known.
func (h *head) began() int64 {
	last := h.last()
	switch {
	case last != nil && !h.now.Vacant() && (last.Token == h.now.Leader.Token || LedBy(*last, h.now.Leader.ID)):
		return last.Began.UnixMilli()
	case last != nil && h.now.Vacant() && !last.Ended.IsZero():
		return last.Ended.UnixMilli()
	case h.since.IsZero():
		return 0
	}
	return h.since.UnixMilli()
}

// stateOf says how it stands with the first of an election.
func stateOf(now elect.State, h header.Header) (string, mood) {
	switch {
	case now.MovedTo != "":
		return "moved to " + now.MovedTo, quiet
	case now.Paused:
		return "paused", busy
	case now.Gate.Key != "" && h.Migration.Step != "":
		return "behind a gate", quiet
	case now.Gate.Key != "":
		return "closed for ever", bad
	case now.Vacant():
		return "nobody leads", bad
	case h.Resign == now.Leader.Token:
		return "asked to resign", busy
	case now.Leader.Acknowledged:
		return "at work", good
	}
	return "leads", good
}
