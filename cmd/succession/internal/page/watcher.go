package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/internal/unready"
)

const (
	// atOnce is how many heads are read at a time.
	atOnce = 8
	// The watcher rests rests times as long as its round has taken, between the two bounds.
	rests    = 9
	minRest  = time.Second
	maxRest  = 30 * time.Second
	patience = 10 * time.Second // how long a request may take
	// explainEvery is how long a reason counts. To look for one takes some connections to each server, which write them into their logs.
	explainEvery = 30 * time.Second
	// remembered is how long a line is shown in which nobody stands any more.
	remembered = time.Hour
)

// A watcher looks at all elections of a coordinator while a page is open. It is safe for concurrent
// use.
type watcher struct {
	b     backend.Backend
	named []string // shown always
	most  int      // how many lines are looked at
	log   *slog.Logger
	past  *past
	pulse *pulse
	bell  bell // rings at each change, also of a detail
	tasks *tasks
	looks *shared
	// explain says why the coordinator is not heard from, or ""; nil if nobody can. It may block.
	explain func(context.Context) string

	mu        sync.Mutex
	heads     map[string]*head
	stale     bool // heads have changed since rows were made
	rows      map[string]numbered
	seq       uint64    // of the newest change of a row
	cut       uint64    // seq when rows were dropped last
	trouble   int       // how many rows are in trouble
	more      int       // how many lines are not looked at
	good      time.Time // when the newest round without an error began; zero if there was none
	goodAge   int       // the age of the pulse then
	err       error     // of the newest round
	since     time.Time // nothing newer is known since then, because of err
	why       string    // what explain has said
	observers map[string]*observer
	whole     []byte // the event of the whole list, as all streams send it
	wholeAt   listedAt
	wholeMade time.Time
}

// numbered is a row with the number of its newest change.
type numbered struct {
	row
	seq uint64
}

func newWatcher(b backend.Backend, named []string, log *slog.Logger) *watcher {
	w := &watcher{
		b: b, named: named, log: log, most: maxLines, past: newPast(), tasks: newTasks(),
		heads: make(map[string]*head), rows: make(map[string]numbered), observers: make(map[string]*observer),
	}
	w.looks = &shared{run: w.look, on: w.tasks}
	w.pulse = &pulse{ask: w.beat}
	for _, name := range named {
		w.heads[name] = &head{at: time.Now()}
	}
	return w
}

// close ends all that the watcher runs, and waits for that.
func (w *watcher) close() { w.tasks.close() }

// look makes rounds until ctx ends, as long as the coordinator is heard from.
func (w *watcher) look(ctx context.Context) {
	w.past.blind("", time.Now())
	defer func() { w.past.blind(unwatched, time.Now()) }()
	var listening sync.WaitGroup
	defer listening.Wait()
	listening.Go(func() { w.pulse.listen(ctx) })
	listening.Go(func() { w.hear(ctx) })
	for ctx.Err() == nil {
		w.pulse.whileHeard(ctx, w.rounds)
	}
}

// rounds makes rounds until ctx ends.
func (w *watcher) rounds(ctx context.Context) {
	for {
		begin := time.Now()
		age, _ := w.pulse.age()
		err := w.round(ctx)
		if ctx.Err() != nil {
			return
		}
		w.ended(begin, age, err)
		if backoff.Sleep(ctx, min(max(rests*time.Since(begin), minRest), maxRest)) != nil {
			return
		}
	}
}

// beat asks the coordinator something small, of which the answer does not matter.
func (w *watcher) beat(ctx context.Context) error {
	s, err := w.b.Session(ctx)
	if err == nil {
		err = s.Refresh(ctx) // a server that is cut off from its ensemble may answer reads
	}
	if err == nil {
		_, err = s.Head(ctx, "page")
	}
	return err
}

// hear notes when the coordinator falls silent, and when it is heard from again, until ctx ends.
func (w *watcher) hear(ctx context.Context) {
	for ctx.Err() == nil {
		turned := w.pulse.turned.next()
		until, turn := context.WithCancel(ctx)
		var explaining sync.WaitGroup
		if since, why := w.pulse.lost(); !since.IsZero() {
			w.past.blind(unreached, since)
			w.log.Warn("the coordinator is not heard from", "since", since, "err", why)
			if w.explain != nil {
				explaining.Go(func() { w.explainAgain(until) })
			}
		} else {
			w.past.blind("", time.Now())
		}
		w.bell.ring()
		select {
		case <-turned:
		case <-ctx.Done():
		}
		turn()
		explaining.Wait()
		w.explained("")
	}
}

// explainAgain has it explained again and again why the coordinator is not heard from, until ctx ends: that may change.
func (w *watcher) explainAgain(ctx context.Context) {
	for ctx.Err() == nil {
		if why := w.explain(ctx); ctx.Err() == nil {
			w.explained(why)
		}
		_ = backoff.Sleep(ctx, explainEvery)
	}
}

// explained notes why the coordinator is not heard from.
func (w *watcher) explained(why string) {
	w.mu.Lock()
	changed := w.why != why
	w.why = why
	w.mu.Unlock()
	if changed {
		w.bell.ring()
	}
}

// ended notes how a round has ended, which began then, at an age of the pulse.
func (w *watcher) ended(begin time.Time, age int, err error) {
	w.mu.Lock()
	if err == nil {
		w.good, w.goodAge = begin, age
	} else if w.err == nil {
		if w.since = w.good; w.since.IsZero() {
			w.since = begin
		}
	}
	told := fmt.Sprint(err) != fmt.Sprint(w.err)
	w.err = err
	w.mu.Unlock()
	if err == nil {
		w.past.blind("", time.Now())
	} else {
		w.past.blind(unreached, begin)
	}
	if told && err != nil {
		w.log.Warn("the elections cannot be looked at", "err", err)
	}
	w.bell.ring()
}

// errNoList says what to do where lines cannot be listed.
var errNoList = errors.New("this coordinator cannot say which elections there are; name them, as in: succession ui reports mails")

// round reads which elections there are, and how they stand: in one request where the coordinator can tell all at once.
func (w *watcher) round(ctx context.Context) error {
	s, err := within(ctx, w.b.Session)
	if err != nil {
		return err
	}
	all, err := within(ctx, s.Survey)
	if errors.Is(err, errors.ErrUnsupported) {
		return w.walk(ctx, s)
	}
	if err == nil {
		w.survey(all)
	}
	return err
}

// survey takes what a survey has of all lines. An election in which nobody stands is known by its header, or its history.
func (w *watcher) survey(all map[string]backend.Standing) {
	lines := make(map[string]int)
	for name, st := range all {
		if h, err := backend.ParseHeader(st.Record.Value); st.Stand > 0 || err != nil || h != (backend.Header{}) {
			lines[name] = st.Stand
		} else if election, ok := strings.CutSuffix(name, naming.History); ok && backend.CheckName(election) == nil {
			if _, err := operate.HistoryOf(st.Record); err == nil {
				lines[election] = all[election].Stand
			}
		}
	}
	more := w.bound(lines)
	for _, name := range w.listed(lines, more) {
		if isBeside(name) {
			continue
		}
		st, ok := all[name]
		if !ok {
			st.Record.Version = backend.Absent
		}
		first := st.First.Position
		if r, says := all[unready.Record(name, first)]; !says || r.Record.Version == backend.Absent {
			first = 0
		}
		w.tell(name, all[naming.OfElection(name, naming.History)].Record, first)
		if l, err := st.Line(); err == nil {
			w.saw(name, l, false)
		} else {
			w.unreadable(name, err)
		}
	}
}

// tell notes what the records beside an election tell: its history, and the position of the first in line if that is not ready.
func (w *watcher) tell(name string, told backend.Record, unready uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.heads[name]
	if h.toldAt != told.Version { // the history need not be read again if it has not changed
		h.told, _ = operate.HistoryOf(told) // the detail says why it cannot be read
		h.toldAt = told.Version
	}
	h.unready, w.stale = unready, true
}

// bound leaves the first lines by name, as many as are looked at, and returns how many more there were.
func (w *watcher) bound(lines map[string]int) (more int) {
	if len(lines) <= w.most {
		return 0
	}
	for _, name := range sortedKeys(lines)[w.most:] {
		delete(lines, name)
		more++
	}
	return more
}

// walk is round for a coordinator that tells one line at a time. It reads which lines there are, and the head of each.
func (w *watcher) walk(ctx context.Context, s backend.Session) error {
	lines, err := within(ctx, s.Lines)
	if errors.Is(err, errors.ErrUnsupported) && len(w.named) > 0 {
		err = nil
	} else if errors.Is(err, errors.ErrUnsupported) {
		err = errNoList
	}
	if err != nil {
		return err
	}
	more := w.bound(lines)
	names := w.listed(lines, more)
	var mu sync.Mutex
	var worst error
	work := make(chan string)
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for name := range work {
				if err := w.read(ctx, s, name); err != nil {
					mu.Lock()
					worst = err
					mu.Unlock()
				}
			}
		})
	}
	for _, name := range names {
		if ctx.Err() != nil {
			break
		}
		work <- name
	}
	close(work)
	workers.Wait()
	if worst == nil {
		worst = context.Cause(ctx) // then some lines were not read
	}
	return worst
}

// within calls f with a context that ends in time.
func within[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("%w: no answer within %v", backend.ErrUnavailable, patience))
	defer cancel()
	return f(ctx)
}

// listed notes how many stand in each line, forgets those that are empty since long, and returns
// the names of those to read.
func (w *watcher) listed(lines map[string]int, more int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.more = more
	now := time.Now()
	for name, n := range lines {
		h := w.heads[name]
		if h == nil {
			h = new(head)
			w.heads[name] = h
		}
		h.stand, h.at = n, now
	}
	var names []string
	for name, h := range w.heads {
		if _, stands := lines[name]; !stands {
			h.stand = 0
			if !slices.Contains(w.named, name) && (now.Sub(h.at) > remembered || len(w.heads) > w.most) {
				delete(w.heads, name)
				w.past.forget(name)
				continue
			}
		}
		names = append(names, name)
	}
	w.stale = true
	slices.Sort(names)
	return names
}

// read reads the head of one line, and what the records beside it tell. It fails if the coordinator did not answer.
func (w *watcher) read(ctx context.Context, s backend.Session, name string) error {
	if isBeside(name) {
		return nil
	}
	l, err := within(ctx, func(ctx context.Context) (backend.Line, error) { return s.Head(ctx, name) })
	var h header.Header
	if err == nil {
		h, err = header.Of(l.Header)
	}
	var first uint64 // its position, if it is not ready
	if err == nil && len(l.Members) > 0 && h.Choice.Readiness {
		var why string
		first = l.Members[0].Position
		why, err = within(ctx, func(ctx context.Context) (string, error) { return unready.Why(ctx, s, name, first) })
		if why == "" {
			first = 0
		}
	}
	told := backend.Record{Version: backend.Absent}
	if beside := naming.OfElection(name, naming.History); err == nil && beside != "" {
		var r backend.Record
		r, err = within(ctx, func(ctx context.Context) (backend.Record, error) { return s.Get(ctx, beside) })
		switch {
		case err == nil:
			told = r
		case !unanswered(err): // the line is shown without its history
			err = nil
		}
	}
	if err == nil {
		w.tell(name, told, first)
		w.saw(name, l, false)
	}
	if err == nil || ctx.Err() != nil {
		return nil
	}
	if unanswered(err) {
		return err
	}
	w.unreadable(name, err)
	return nil
}

// unreadable notes why a line cannot be read.
func (w *watcher) unreadable(name string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h := w.heads[name]; h != nil {
		h.err, w.stale = err, true
	}
}

// saw notes the newest state of a line, whole or with its first member alone.
func (w *watcher) saw(name string, l backend.Line, whole bool) {
	stand := len(l.Members)
	l.Members = l.Members[:min(stand, 1)]
	state, _, err := elect.StateOf(l)
	if err != nil {
		w.unreadable(name, err)
		return
	}
	first, err := header.LineOf(l)
	if err != nil {
		w.unreadable(name, err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.heads[name]
	if h == nil {
		h = &head{at: time.Now()}
		w.heads[name] = h
	}
	before := rowOf(name, h)
	h.note(first, state)
	if whole || stand == 0 {
		h.stand = stand
	}
	now := rowOf(name, h)
	if now.Kind == kindElection {
		w.past.saw(name, state, first.Header.Resign != 0 && first.Header.Resign == state.Leader.Token)
	}
	if before != now {
		w.stale = true
		w.bell.ring()
	}
}

// A listedAt is how far a page has been told of the list. The zero value is before all.
type listedAt struct {
	seq uint64 // of the newest change of a row
	// What is not about a row has no number.
	ready bool
	err   string
	lost  int64 // as in the list
}

// aside reports whether at and other differ by rows alone.
func (at listedAt) aside(other listedAt) bool {
	at.seq = other.seq
	return at == other
}

const (
	// maxNews is how many rows are told to a page by themselves. If more have changed it is told the whole list, which is made
	// once for all pages.
	maxNews = 100
	// wholeEvery is how often the whole list is made anew because of its rows. It may have many megabytes, and a page that does not read
	// keeps what it is told until writeBound ends that: pages that come one by one must not keep a list each.
	wholeEvery = 5 * time.Second
)

// news returns the event that tells a page what has changed in the list, and how far it has been told then. The event is nil if nothing
// has changed, or if that can only be told by the whole list, and the page has the newest.
func (w *watcher) news(after listedAt) ([]byte, listedAt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stale {
		w.refold()
	}
	now := listedAt{seq: w.seq, err: fmt.Sprint(w.err)}
	now.ready, now.lost = w.known()
	if now == after {
		return nil, now
	}
	l := list{All: after.seq < w.cut || after == (listedAt{})}
	for _, r := range w.rows {
		if l.All = l.All || len(l.Rows) > maxNews; l.All {
			break
		}
		if r.seq > after.seq {
			l.Rows = append(l.Rows, r.row)
		}
	}
	if !l.All {
		return event("list", w.fill(l, now)), now
	}
	fresh := now.aside(w.wholeAt) && time.Since(w.wholeMade) < wholeEvery
	has := after.seq >= w.wholeAt.seq && after != (listedAt{})
	if fresh && has && now.aside(after) {
		return nil, after
	}
	if !fresh || has {
		l.Rows = nil
		for _, r := range w.rows {
			l.Rows = append(l.Rows, r.row)
		}
		w.whole, w.wholeAt, w.wholeMade = event("list", w.fill(l, now)), now, time.Now()
	}
	return w.whole, w.wholeAt
}

// known returns whether all lines have been read since somebody looks and the coordinator is heard from, and lost, as in the
// list: both as of one instant, so that nothing from before a silence is told as if it were so now. The caller holds w.mu.
func (w *watcher) known() (ready bool, lost int64) {
	age, since := w.pulse.age()
	return !w.good.IsZero() && w.goodAge == age, millis(since)
}

// millis returns t in milliseconds since 1970; 0 for the zero time.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// fill adds to l what is not about single rows, and cuts the rows to what a page has room for. The caller holds w.mu.
func (w *watcher) fill(l list, now listedAt) list {
	if l.Rows == nil {
		l.Rows = []row{} // null is no list
	}
	for i := range l.Rows {
		r := &l.Rows[i]
		r.Who, r.State = ui.Clip(r.Who), ui.Clip(r.State)
	}
	l.More, l.Ready, l.Lost = w.more, now.ready, now.lost
	slices.SortFunc(l.Rows, func(a, b row) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Line, b.Line))
	})
	if w.err != nil {
		l.Error, l.Since = ui.Clip(ui.OneLine(w.err.Error())), w.since.UnixMilli()
	}
	return l
}

// refold makes the rows anew, and numbers those that have changed.
func (w *watcher) refold() {
	w.stale = false
	rows := fold(w.heads)
	for name := range w.rows {
		if _, still := rows[name]; !still {
			delete(w.rows, name)
			w.seq++
			w.cut = w.seq
		}
	}
	w.trouble = 0
	for name, r := range rows {
		if r.Mood == bad {
			w.trouble++
		}
		if old, ok := w.rows[name]; !ok || old.row != r {
			w.seq++
			w.rows[name] = numbered{r, w.seq}
		}
	}
}

// rowAt returns what the list says that is at a line, and all lines that belong to it.
func (w *watcher) rowAt(line string) (recipe, map[string]head) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stale {
		w.refold()
	}
	r := namesake(line, w.heads)
	if row, ok := w.rows[line]; ok {
		r = recipe{row.Kind, row.Name}
	}
	parts := make(map[string]head)
	for line, h := range w.heads {
		if recipeOf(line, w.heads) == r {
			parts[line] = *h
		}
	}
	return r, parts
}

// lists reports whether the list has something at a line, and whether it is ready.
func (w *watcher) lists(line string) (listed, ready bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ready, _ = w.known()
	return w.has(line), ready
}

// has is lists. The caller holds w.mu.
func (w *watcher) has(line string) bool {
	if w.stale {
		w.refold()
	}
	_, ok := w.rows[line]
	return ok || slices.Contains(w.named, line) || namesake(line, w.heads).kind != kindElection
}

// observe returns the observer of what the list has at a line, which observes until release is called. It is nil, without
// an error as long as the list is not ready, if there is nothing, or if there are too many observers.
func (w *watcher) observe(line string) (o *observer, release func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.has(line) {
		if ready, _ := w.known(); ready {
			err = errUnlisted
		}
		return nil, nil, err
	}
	if o = w.observers[line]; o == nil {
		for line, o := range w.observers {
			if len(w.observers) >= maxObservers {
				o.runs.rest() // it may only linger
			}
			if o.runs.idle() {
				delete(w.observers, line)
			}
		}
		if len(w.observers) >= maxObservers {
			return nil, nil, errManyObservers
		}
		o = newObserver(w, line)
		w.observers[line] = o
	}
	return o, o.runs.need(), nil
}
