package example

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// A server is a coordinator in memory, behind HTTP. It keeps lines of members, records,
// and sessions. A session ends when no request has named it for its TTL. Every change has an
// index in the server's log. The log has a name, and gets a new one when the server is restored
// from a backup.
type server struct {
	mu       sync.Mutex
	log      string
	index    uint64
	sessions map[string]*grant
	lines    map[string][]entry
	records  map[string]record
	changed  chan struct{} // closed and replaced at each change
}

// A grant is a session.
type grant struct {
	ttl   time.Duration
	ends  time.Time
	timer *time.Timer
	used  map[string]bool // lines with keys that the session may not create any more
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q request
	body, err := io.ReadAll(r.Body) // to its end: only then net/http notices when the client goes
	if err != nil || json.Unmarshal(body, &q) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	for arriving := true; ; arriving = false {
		a, status, changed := s.do(r.URL.Path, &q, arriving)
		if status != pending {
			w.WriteHeader(status)
			json.NewEncoder(w).Encode(a)
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// do does an operation in one step. arriving is false if a pending operation is tried again.
func (s *server) do(op string, q *request, arriving bool) (a answer, status int, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.sessions[q.Session]
	switch {
	case q.Log != "" && q.Log != s.log:
		return a, http.StatusMisdirectedRequest, nil
	case g == nil && op != "/open":
		return a, http.StatusGone, nil
	case g != nil && arriving: // the client of a pending operation may be gone, so that does not count
		g.ends = time.Now().Add(g.ttl)
		g.timer.Reset(g.ttl)
	}
	a.Log = s.log
	status = s.operate(op, q, &a)
	return a, status, s.changed
}

const (
	pending = 0 // until something changes
	ok      = http.StatusOK
	missing = http.StatusNotFound
)

// operate does an operation, and returns its status. The caller holds the lock, as for all
// methods below.
func (s *server) operate(op string, q *request, a *answer) int {
	i := s.find(q)
	switch op {
	case "/open":
		a.Session = rand.Text()
		s.grant(a.Session, q.TTL, make(map[string]bool))
	case "/renew":
	case "/end":
		s.end(q.Session)
	case "/join":
		free := s.use(q)
		switch {
		case i < 0 && !free:
			return missing
		case i < 0:
			i = len(s.lines[q.Line])
			s.lines[q.Line] = append(s.lines[q.Line], entry{Key: q.Key, Session: q.Session, Value: q.Value, Position: s.change()})
		}
		a.Line = slices.Clone(s.lines[q.Line][i : i+1])
	case "/leave":
		switch {
		case i < 0:
			s.use(q) // the join may still be on its way
		case !s.owns(q, i):
			return http.StatusForbidden
		default:
			s.remove(q.Line, func(e entry) bool { return e.Key == q.Key })
		}
	case "/ahead":
		if i < 0 {
			return missing
		}
		a.Line, a.record = slices.Clone(s.lines[q.Line][max(0, i-1):i+1]), s.record(q.Line)
		if q.Place != nil && *q.Place == a.Line[0].Position && q.RecordVersion == a.Version {
			return pending
		}
	case "/line":
		line := s.lines[q.Line]
		if q.Members != nil && *q.Members == len(line) && (len(line) == 0 || line[len(line)-1].Position == q.Position) {
			return pending
		}
		a.Line, a.record = slices.Clone(line), s.record(q.Line)
	case "/gone":
		if i >= 0 {
			return pending
		}
	case "/pin":
		switch {
		case i < 0:
			return missing
		case !s.owns(q, i):
			return http.StatusForbidden
		case s.lines[q.Line][i].Once == q.Once:
			return ok // it was done before
		case s.lines[q.Line][i].Session == "" && bytes.Equal(s.record(q.Name).Value, q.Value):
			return ok
		case !s.may(q):
			return http.StatusPreconditionFailed
		}
		s.lines[q.Line][i].Session, s.lines[q.Line][i].Once = "", q.Once
		s.records[q.Name] = record{q.Value, int64(s.change())}
	case "/get", "/watch": // a get has version 0, which no record has
		if a.record = s.record(q.Name); a.Version == q.RecordVersion {
			return pending
		}
	case "/put", "/delete":
		switch {
		case q.Key != "" && i < 0:
			return missing
		case !s.may(q):
			return http.StatusPreconditionFailed
		}
		a.record = record{q.Value, int64(s.change())}
		s.records[q.Name] = a.record
		if op == "/delete" {
			delete(s.records, q.Name)
		}
	case "/list":
		for name := range s.records {
			if rest, below := strings.CutPrefix(name, q.Name+"/"); below && !strings.Contains(rest, "/") {
				a.Names = append(a.Names, name)
			}
		}
	default:
		return http.StatusBadRequest
	}
	return ok
}

// may reports whether the record has the version that a write demands.
func (s *server) may(q *request) bool {
	return q.RecordVersion == 0 || q.RecordVersion == s.record(q.Name).Version
}

// change returns the index of a new change, and wakes all pending operations.
func (s *server) change() uint64 {
	s.index++
	close(s.changed)
	s.changed = make(chan struct{})
	return s.index
}

func (s *server) record(name string) record {
	if r, ok := s.records[name]; ok {
		return r
	}
	return record{Version: -1}
}

// find returns the index of the member in its line, or -1 if it is not there.
func (s *server) find(q *request) int {
	return slices.IndexFunc(s.lines[q.Line], func(e entry) bool {
		return e.Key == q.Key && (e.Position == q.Position || q.Position == 0)
	})
}

// use reports whether the session may still create the member. From then on it may not.
func (s *server) use(q *request) bool {
	used, id := s.sessions[q.Session].used, q.Line+"/"+q.Key
	defer func() { used[id] = true }()
	return !used[id]
}

// owns reports whether the session may take the member out, or pin it.
func (s *server) owns(q *request, i int) bool {
	owner := s.lines[q.Line][i].Session
	return owner == q.Session || owner == ""
}

func (s *server) remove(line string, which func(entry) bool) {
	s.lines[line] = slices.DeleteFunc(s.lines[line], which)
	s.change()
}

func (s *server) end(id string) {
	s.sessions[id].timer.Stop()
	delete(s.sessions, id)
	for line := range s.lines {
		s.remove(line, func(e entry) bool { return e.Session == id })
	}
}

func (s *server) grant(id string, ttl time.Duration, used map[string]bool) {
	g := &grant{ttl: ttl, ends: time.Now().Add(ttl), used: used}
	s.sessions[id] = g
	g.timer = time.AfterFunc(ttl, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.sessions[id] == g && time.Until(g.ends) <= 0 {
			s.end(id)
		}
	})
}
