package memory

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

var (
	// errWait parks a blocking call until its topic has an event.
	errWait = errors.New("memory: wait")
	// errNoSession answers a call under a session that the coordinator has ended.
	errNoSession = errors.New("memory: no such session")
)

// A store is the coordinator's data. Every change takes the next index of the log. A member's
// position and a record's version are the index that made them.
type store struct {
	index   uint64
	lines   map[string]*line
	records map[string]record
	events  []topic // what has happened, and whoever waits for it does not know yet
}

// A topic is what a blocking call can wait for.
type topic struct {
	event event
	name  string // of the line or the record
	at    uint64 // the member's position
}

type event uint8

const (
	eventNone   event = iota
	eventMember       // the member has left, or was pinned
	eventLine         // somebody has joined the line, or left it
	eventRecord       // the record has changed
)

// A line holds its members in the order of their positions.
type line struct {
	members []member
	next    uint64 // the number in the next key; it begins anew when the election is deleted
}

type member struct {
	backend.Member
	owner uint64 // the session that joined it, 0 when pinned
}

type record struct {
	value   []byte
	version backend.Version
}

func newStore(index uint64) store {
	return store{
		index:   index,
		lines:   make(map[string]*line),
		records: make(map[string]record),
	}
}

// clone returns a copy without events.
func (st *store) clone() store {
	out := store{index: st.index, lines: make(map[string]*line), records: maps.Clone(st.records)}
	for name, l := range st.lines {
		out.lines[name] = &line{members: slices.Clone(l.members), next: l.next}
	}
	return out
}

func (st *store) happened(t topic) { st.events = append(st.events, t) }

// join adds a member like m at the end of its line.
func (st *store) join(m backend.Member, owner uint64) backend.Member {
	name := m.Line
	l := st.lines[name]
	if l == nil {
		l = new(line)
		st.lines[name] = l
	}
	st.index++
	m.Key, m.Position = fmt.Sprintf("n_%010d", l.next), st.index
	l.next++
	l.members = append(l.members, member{m, owner})
	st.happened(topic{event: eventLine, name: name})
	return m
}

// nests fails if somebody stands in a line below the line name, or in one that it is below. etcd
// refuses that, whose own clients would take the members of the inner line for those of the outer
// one: a test that passes here is to mean something there.
func (st *store) nests(name string) error {
	for other, l := range st.lines {
		if len(l.members) > 0 && (strings.HasPrefix(name, other+"/") || strings.HasPrefix(other, name+"/")) {
			return fmt.Errorf("%w name: the elections %s and %s cannot both be used on every coordinator; choose names of which none "+
				"continues the other with a slash", backend.ErrInvalid, other, name)
		}
	}
	return nil
}

// find returns the line of m and where m stands there, or false. A later member with m's key
// is not m.
func (st *store) find(m backend.Member) (l *line, i int, ok bool) {
	l = st.lines[m.Line]
	if l == nil {
		return nil, 0, false
	}
	i, ok = slices.BinarySearchFunc(l.members, m.Position, func(o member, at uint64) int {
		return cmp.Compare(o.Position, at)
	})
	if !ok || l.members[i].Key != m.Key {
		return nil, 0, false
	}
	return l, i, true
}

// ahead says who stands in front of m.
func (st *store) ahead(m backend.Member) (backend.Place, error) {
	l, i, ok := st.find(m)
	if !ok {
		return backend.Place{}, backend.ErrNotMember
	}
	h, err := backend.ParseHeader(st.records[m.Line].value)
	if err != nil {
		return backend.Place{}, err
	}
	var ahead *backend.Member
	if front := kit.Awaited(i, func(i int) bool { return l.members[i].Shared }); front >= 0 {
		ahead = &l.members[front].Member
	}
	return kit.PlaceOf(l.members[i].Member, ahead, h)
}

// watchPlace returns errWait as long as m stands as after says.
func (st *store) watchPlace(m backend.Member, after *backend.Place) (*backend.Place, error) {
	p, err := st.ahead(m)
	if err != nil {
		return nil, err
	}
	if p.First == after.First && p.Ahead == after.Ahead && (!heedsHeader(&p) || p.Header == after.Header) {
		return nil, errWait
	}
	return &p, nil
}

// gone returns errWait as long as m stands.
func (st *store) gone(m backend.Member) error {
	if _, _, ok := st.find(m); ok {
		return errWait
	}
	return nil
}

// remove takes m out of its line and returns the session that owned it.
func (st *store) remove(m backend.Member) (owner uint64) {
	l, i, ok := st.find(m)
	if !ok {
		return 0
	}
	owner = l.members[i].owner
	l.members = slices.Delete(l.members, i, i+1)
	st.index++
	st.happened(topic{eventMember, m.Line, m.Position})
	st.happened(topic{event: eventLine, name: m.Line})
	return owner
}

// removeItem removes m, which is pinned, if by stands.
func (st *store) removeItem(m, by backend.Member) error {
	if _, _, stands := st.find(by); !stands {
		return backend.ErrNotMember
	}
	if l, i, stands := st.find(m); stands && !l.members[i].Pinned {
		return fmt.Errorf("%w: member %s is no item", backend.ErrDenied, m.Key)
	}
	st.remove(m)
	return nil
}

// pin pins m and writes the header of its election, or does neither.
func (st *store) pin(m backend.Member, session uint64, h backend.Header, at backend.Version) error {
	l, i, ok := st.find(m)
	if !ok {
		return backend.ErrNotMember
	}
	p := &l.members[i]
	if !p.Pinned && p.owner != session {
		return fmt.Errorf("%w: member %s was joined by another session", backend.ErrDenied, m.Key)
	}
	value := h.Encode()
	if p.Pinned && string(st.records[m.Line].value) == string(value) {
		return nil
	}
	if _, err := st.put(m.Line, value, &backend.If{Version: at}); err != nil {
		return err
	}
	p.Pinned, p.owner = true, 0
	st.happened(topic{eventMember, m.Line, m.Position})
	return nil
}

// line returns the whole line with its header.
func (st *store) line(name string) (backend.Line, error) {
	r := st.get(name)
	h, err := backend.ParseHeader(r.Value)
	if err != nil {
		return backend.Line{}, err
	}
	return backend.Line{Members: st.members(name), Header: h, Version: r.Version}, nil
}

// head returns the line with its first member alone.
func (st *store) head(name string) (backend.Line, error) {
	l, err := st.line(name)
	l.Members = l.Members[:min(len(l.Members), 1)]
	return l, err
}

// members returns the members of the line in order.
func (st *store) members(name string) []backend.Member {
	l := st.lines[name]
	if l == nil {
		return nil
	}
	var out []backend.Member
	for _, m := range l.members {
		out = append(out, m.Member)
	}
	return out
}

// standing returns how many stand in each line in which somebody does.
func (st *store) standing() map[string]int {
	out := make(map[string]int)
	for name, l := range st.lines {
		if len(l.members) > 0 {
			out[name] = len(l.members)
		}
	}
	return out
}

// survey returns what is at each name.
func (st *store) survey() map[string]backend.Standing {
	out := make(map[string]backend.Standing)
	for name := range st.records {
		out[name] = backend.Standing{Record: st.get(name)}
	}
	for name, l := range st.lines {
		if len(l.members) > 0 {
			out[name] = backend.Standing{Stand: len(l.members), First: st.members(name)[0], Record: st.get(name)}
		}
	}
	return out
}

// watchLine returns errWait as long as the same members stand in the line as in after.
func (st *store) watchLine(name string, after backend.Line) (backend.Line, error) {
	l, err := st.line(name)
	if err == nil && kit.SameMembers(l, after) {
		return backend.Line{}, errWait
	}
	return l, err
}

func (st *store) get(name string) backend.Record {
	r, ok := st.records[name]
	if !ok {
		return backend.Record{Name: name, Version: backend.Absent}
	}
	return backend.Record{Name: name, Value: slices.Clone(r.value), Version: r.version}
}

// check fails if the condition of a write to the record does not hold.
func (st *store) check(name string, cond *backend.If) error {
	if cond == nil {
		return nil
	}
	if cond.Member != (backend.Member{}) {
		if _, _, ok := st.find(cond.Member); !ok {
			return backend.ErrNotMember
		}
	}
	if have := st.get(name).Version; cond.Version != backend.Any && cond.Version != have {
		return fmt.Errorf("%w: version is %d, not %d", backend.ErrVersion, have, cond.Version)
	}
	return nil
}

// put writes the record if the condition holds.
func (st *store) put(name string, value []byte, cond *backend.If) (backend.Version, error) {
	if err := st.check(name, cond); err != nil {
		return 0, err
	}
	st.index++
	v := backend.Version(st.index)
	st.records[name] = record{value, v}
	st.happened(topic{event: eventRecord, name: name})
	return v, nil
}

// del removes the record if the condition holds.
func (st *store) del(name string, cond *backend.If) error {
	if err := st.check(name, cond); err != nil {
		return err
	}
	if _, ok := st.records[name]; ok {
		st.index++
		delete(st.records, name)
		st.happened(topic{event: eventRecord, name: name})
	}
	return nil
}

// list returns the names of the records directly under dir.
func (st *store) list(dir string) []string {
	var out []string
	for name := range st.records {
		if rest, ok := strings.CutPrefix(name, dir+"/"); ok && !strings.Contains(rest, "/") {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// readAll returns the records directly under dir.
func (st *store) readAll(dir string) []backend.Record {
	var out []backend.Record
	for _, name := range st.list(dir) {
		out = append(out, st.get(name))
	}
	return out
}

// watch returns errWait as long as the record has the version after.
func (st *store) watch(name string, after backend.Version) (backend.Record, error) {
	r := st.get(name)
	if r.Version == after {
		return backend.Record{}, errWait
	}
	return r, nil
}
