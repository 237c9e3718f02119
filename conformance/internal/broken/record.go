package broken

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/succession-dev/succession/backend"
)

var recordFlaws = []Flaw{
	{
		Name:    "read, then write",
		Breaks:  "Records: the version is compared before the write and not with it",
		Must:    "Records.one-wins Records.counter Value.update",
		May:     "Records.churn",
		session: func(_ *Backend, s backend.Session) backend.Session { return &readThenWrite{s} },
	},
	{
		Name:    "late write",
		Breaks:  "Records: the version is compared before a request is sent, which is done however late it comes",
		Must:    "Records.held",
		session: func(b *Backend, s backend.Session) backend.Session { return &lateWrite{s, b} },
	},
	{
		Name:    "by value",
		Breaks:  "Records: the version is compared when the record is read, and only the value when it is written",
		Must:    "Records.churn",
		May:     "Records.one-wins",
		session: func(_ *Backend, s backend.Session) backend.Session { return &byValue{s} },
	},
	{
		Name:   "no refresh",
		Breaks: "Records: reads come from a server that lags behind, and Refresh does not wait for it",
		Must:   "Records.fresh Value.fresh Queue.fresh Group.owners",
		May:    "Records L7 L10 L3.place-fence G2.fence-drop",
		session: func(_ *Backend, s backend.Session) backend.Session {
			return &noRefresh{Session: s, seen: make(map[string]backend.Record), met: make(map[uint64]int)}
		},
	},
	{
		Name:    "lossy watch",
		Breaks:  "Records: Watch that is called late waits for a change to come",
		Must:    "Records.watch Records.watch-last Value.cut",
		session: func(_ *Backend, s backend.Session) backend.Session { return &lossyWatch{s} },
	},
	{
		Name:    "empty is absent",
		Breaks:  "Records: a record with an empty value is taken for none",
		Must:    "Records.values",
		May:     "Records.list",
		session: func(_ *Backend, s backend.Session) backend.Session { return &emptyIsAbsent{s} },
	},
	{
		Name:    "same value",
		Breaks:  "Records: a write of the value that the record has keeps the version",
		Must:    "Records.versions",
		session: func(_ *Backend, s backend.Session) backend.Session { return &sameValue{s} },
	},
	{
		Name:    "counted writes",
		Breaks:  "Records: versions count the writes since the record came into being, and begin again after its deletion",
		Must:    "Records.versions",
		May:     "Records.values Records.list Records.list-churn Records.churn L7.foreign",
		session: func(_ *Backend, s backend.Session) backend.Session { return &countedWrites{s} },
	},
	{
		Name:    "create instead",
		Breaks:  "Records: a Put at a version where there is no record creates one",
		Must:    "Records.condition",
		May:     "Records.churn",
		session: func(_ *Backend, s backend.Session) backend.Session { return &createInstead{s} },
	},
	{
		Name:   "by prefix",
		Breaks: "Records: List shows all names that begin so",
		Must:   "Records.list L7.folder",
		May:    "Records.fresh",
		session: func(_ *Backend, s backend.Session) backend.Session {
			return &byPrefix{Session: s, names: make(map[string]bool)}
		},
	},
	{
		Name:    "list of what has gone",
		Breaks:  "Records: List fails when all that was there is deleted",
		Must:    "Records.list-churn",
		May:     "Records.fresh",
		session: func(_ *Backend, s backend.Session) backend.Session { return &emptied{Session: s} },
	},
	{
		Name:    "values of another time",
		Breaks:  "Records: ReadAll has the values that it has seen first",
		Must:    "Records.list",
		May:     "Group Task",
		session: func(b *Backend, s backend.Session) backend.Session { return &oldValues{Session: s} },
	},
	{
		Name:    "closed channel",
		Breaks:  "Records: a cancelled Watch returns the zero record and no error",
		Must:    "Records.watch-cancel G9.ended-context G9.cut-context",
		session: func(_ *Backend, s backend.Session) backend.Session { return &closedChannel{s} },
	},
	{
		Name:    "kept record",
		Breaks:  "Records: Delete on condition of a member says that it is done, and is not",
		Must:    "Records.guard Group.members Group.crash",
		session: func(_ *Backend, s backend.Session) backend.Session { return &keptRecord{s} },
	},
	{
		Name:    "put again",
		Breaks:  "Records: after a lost answer Put is sent again, and the refusal of the second is taken for that of the first",
		Must:    "Records.lost-answer",
		session: func(_ *Backend, s backend.Session) backend.Session { return &putAgain{s} },
	},
	{
		Name:    "watch of the folder",
		Breaks:  "Records: Watch looks again whenever another record of the folder changes",
		Must:    "Task.woken",
		session: func(_ *Backend, s backend.Session) backend.Session { return &folderWatch{s} },
	},
	{
		Name:    "deletions unseen",
		Breaks:  "Records: Watch does not return when the record is deleted",
		Must:    "Records.watch Value.follow",
		session: func(_ *Backend, s backend.Session) backend.Session { return &deletionsUnseen{s} },
	},
	{
		Name:    "one answer lost",
		Breaks:  "Records: when the answer to a Put was lost, the session reads no record any more",
		Must:    "Records.lost-answer Value.lost-answer",
		May:     "L1 L4 L9 L10 G6",
		session: func(b *Backend, s backend.Session) backend.Session { return &oneAnswerLost{Session: s, b: b} },
	},
}

type readThenWrite struct{ backend.Session }

func (s *readThenWrite) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	if cond == nil || cond.Version == backend.Any {
		return s.Session.Put(ctx, name, value, cond)
	}
	r, err := s.Get(ctx, name)
	if err != nil {
		return 0, err
	}
	if r.Version != cond.Version {
		return 0, backend.ErrVersion
	}
	return s.Session.Put(ctx, name, value, &backend.If{Member: cond.Member})
}

type byValue struct{ backend.Session }

func (s *byValue) Put(ctx context.Context, name string, value []byte, cond *backend.If) (v backend.Version, err error) {
	err = s.write(ctx, name, cond, func(cond *backend.If) (err error) {
		v, err = s.Session.Put(ctx, name, value, cond)
		return err
	})
	return v, err
}

func (s *byValue) Delete(ctx context.Context, name string, cond *backend.If) error {
	return s.write(ctx, name, cond, func(cond *backend.If) error { return s.Session.Delete(ctx, name, cond) })
}

func (s *byValue) write(ctx context.Context, name string, cond *backend.If, do func(*backend.If) error) error {
	if cond == nil || cond.Version <= 0 {
		return do(cond)
	}
	first, err := s.Get(ctx, name)
	if err != nil {
		return err
	}
	for r := first; ; {
		if first.Version != cond.Version || r.Version == backend.Absent || !bytes.Equal(r.Value, first.Value) {
			return do(cond) // whose error says what is wrong
		}
		if err = do(&backend.If{Member: cond.Member, Version: r.Version}); !errors.Is(err, backend.ErrVersion) {
			return err
		}
		if r, err = s.Get(ctx, name); err != nil {
			return err
		}
	}
}

// noRefresh shows each state of others one Get late, and each item two calls of Free late.
type noRefresh struct {
	backend.Session
	mu   sync.Mutex
	seen map[string]backend.Record // the newest records that this session has read or written
	met  map[uint64]int            // how often Free has met an item, by position
}

func (s *noRefresh) Free(ctx context.Context, items, claims string) (backend.Member, error) {
	m, err := s.Session.Free(ctx, items, claims)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.met[m.Position]++; err == nil && s.met[m.Position] <= 2 {
		return backend.Member{}, backend.ErrTaken
	}
	return m, err
}

func (s *noRefresh) Refresh(context.Context) error { return nil }

func (s *noRefresh) Get(ctx context.Context, name string) (backend.Record, error) {
	r, err := s.Session.Get(ctx, name)
	if err != nil {
		return r, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before, known := s.seen[name]
	s.seen[name] = r
	if known {
		return before, nil
	}
	return r, nil
}

func (s *noRefresh) wrote(r backend.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[r.Name] = r
}

func (s *noRefresh) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	v, err := s.Session.Put(ctx, name, value, cond)
	if err == nil {
		s.wrote(backend.Record{Name: name, Value: value, Version: v})
	}
	return v, err
}

func (s *noRefresh) Delete(ctx context.Context, name string, cond *backend.If) error {
	err := s.Session.Delete(ctx, name, cond)
	if err == nil {
		s.wrote(backend.Record{Name: name, Version: backend.Absent})
	}
	return err
}

type lossyWatch struct{ backend.Session }

func (s *lossyWatch) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	r, err := s.Get(ctx, name)
	if err != nil || after == 0 {
		return r, err
	}
	return s.Session.Watch(ctx, name, r.Version)
}

type emptyIsAbsent struct{ backend.Session }

func (s *emptyIsAbsent) Get(ctx context.Context, name string) (backend.Record, error) {
	r, err := s.Session.Get(ctx, name)
	if len(r.Value) == 0 {
		r.Version = backend.Absent
	}
	return r, err
}

type sameValue struct{ backend.Session }

func (s *sameValue) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	if r, err := s.Session.Get(ctx, name); err == nil && cond == nil && r.Version != backend.Absent && bytes.Equal(r.Value, value) {
		return r.Version, nil
	}
	return s.Session.Put(ctx, name, value, cond)
}

// countedWrites keeps the count in front of the value, except for that of a header.
type countedWrites struct{ backend.Session }

func counted(r backend.Record) backend.Record {
	n, value, ok := bytes.Cut(r.Value, []byte("|"))
	if ok && r.Version != backend.Absent && !bytes.HasPrefix(r.Value, []byte("{")) {
		fmt.Sscan(string(n), &r.Version)
		r.Value = value
	}
	return r
}

// real returns the record as it is stored, and the condition for that record.
func (s *countedWrites) real(ctx context.Context, name string, cond *backend.If) (backend.Record, *backend.If, error) {
	r, err := s.Session.Get(ctx, name)
	if err != nil {
		return r, nil, err
	}
	at := backend.If{Version: r.Version}
	if cond != nil {
		at.Member = cond.Member
		if cond.Version != backend.Any && cond.Version != counted(r).Version {
			at.Version = 1 << 62 // refused, by the coordinator
		}
	}
	return r, &at, nil
}

func (s *countedWrites) Get(ctx context.Context, name string) (backend.Record, error) {
	r, err := s.Session.Get(ctx, name)
	return counted(r), err
}

func (s *countedWrites) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	if bytes.HasPrefix(value, []byte("{")) {
		return s.Session.Put(ctx, name, value, cond)
	}
	r, at, err := s.real(ctx, name, cond)
	if err != nil {
		return 0, err
	}
	n := max(0, counted(r).Version) + 1
	if _, err = s.Session.Put(ctx, name, append(fmt.Append(nil, n, "|"), value...), at); err != nil {
		return 0, err
	}
	return n, nil
}

func (s *countedWrites) Delete(ctx context.Context, name string, cond *backend.If) error {
	r, at, err := s.real(ctx, name, cond)
	if err != nil || r.Version == backend.Absent && at.Version == backend.Absent {
		return err
	}
	return s.Session.Delete(ctx, name, at)
}

func (s *countedWrites) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	for {
		r, err := s.Session.Get(ctx, name)
		if err != nil || counted(r).Version != after {
			return counted(r), err
		}
		if _, err = s.Session.Watch(ctx, name, r.Version); err != nil {
			return r, err
		}
	}
}

type createInstead struct{ backend.Session }

func (s *createInstead) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	v, err := s.Session.Put(ctx, name, value, cond)
	if errors.Is(err, backend.ErrVersion) && cond.Version > 0 {
		if v, err := s.Session.Put(ctx, name, value, &backend.If{Version: backend.Absent, Member: cond.Member}); err == nil {
			return v, nil
		}
	}
	return v, err
}

type byPrefix struct {
	backend.Session
	mu    sync.Mutex
	names map[string]bool // the names that this session has put
}

func (s *byPrefix) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	v, err := s.Session.Put(ctx, name, value, cond)
	if err == nil {
		s.mu.Lock()
		s.names[name] = true
		s.mu.Unlock()
	}
	return v, err
}

func (s *byPrefix) Delete(ctx context.Context, name string, cond *backend.If) error {
	err := s.Session.Delete(ctx, name, cond)
	if err == nil {
		s.mu.Lock()
		delete(s.names, name)
		s.mu.Unlock()
	}
	return err
}

func (s *byPrefix) List(ctx context.Context, dir string) ([]string, error) {
	names, err := s.Session.List(ctx, dir)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.names {
		if strings.HasPrefix(name, dir) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

type emptied struct {
	backend.Session
	full sync.Map // names under which the last List found records
}

func (s *emptied) List(ctx context.Context, dir string) ([]string, error) {
	names, err := s.Session.List(ctx, dir)
	was, _ := s.full.Swap(dir, len(names) > 0)
	if err == nil && was == true && len(names) == 0 {
		return nil, backend.ErrUnavailable
	}
	return names, err
}

type oldValues struct {
	backend.Session
	first sync.Map // records, by name
}

func (s *oldValues) ReadAll(ctx context.Context, dir string) ([]backend.Record, error) {
	records, err := s.Session.ReadAll(ctx, dir)
	for i, r := range records {
		first, _ := s.first.LoadOrStore(r.Name, r)
		records[i] = first.(backend.Record)
	}
	return records, err
}

type closedChannel struct{ backend.Session }

func (s *closedChannel) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	r, err := s.Session.Watch(ctx, name, after)
	if ctx.Err() != nil {
		return backend.Record{}, nil
	}
	return r, err
}

type keptRecord struct{ backend.Session }

func (s *keptRecord) Delete(ctx context.Context, name string, cond *backend.If) error {
	if cond == nil || cond.Member.Key == "" {
		return s.Session.Delete(ctx, name, cond)
	}
	return s.Session.Delete(ctx, name+"-none", &backend.If{Member: cond.Member})
}

type putAgain struct{ backend.Session }

func (s *putAgain) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	v, err := s.Session.Put(ctx, name, value, cond)
	if errors.Is(err, backend.ErrUnavailable) {
		return s.Session.Put(ctx, name, value, cond)
	}
	return v, err
}

type folderWatch struct{ backend.Session }

func (s *folderWatch) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	for {
		names, err := s.List(ctx, path.Dir(name))
		if err != nil {
			return backend.Record{}, err
		}
		if r, changed, err := s.watchAny(ctx, name, after, names); changed || err != nil {
			return r, err
		}
	}
}

// watchAny waits until one of the records changes, and reports whether it is the one with that name.
func (s *folderWatch) watchAny(ctx context.Context, name string, after backend.Version, names []string) (r backend.Record, changed bool, err error) {
	either, cancel := context.WithCancel(ctx)
	var others sync.WaitGroup
	defer others.Wait()
	defer cancel()
	for _, other := range names {
		if other == name {
			continue
		}
		others.Go(func() {
			if r, err := s.Get(either, other); err == nil {
				_, _ = s.Session.Watch(either, other, r.Version)
			}
			cancel()
		})
	}
	r, err = s.Session.Watch(either, name, after)
	if either.Err() != nil && ctx.Err() == nil && err != nil {
		return r, false, nil
	}
	return r, true, err
}

type deletionsUnseen struct{ backend.Session }

func (s *deletionsUnseen) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	r, err := s.Session.Watch(ctx, name, after)
	if err == nil && r.Version == backend.Absent && after != 0 {
		return s.Session.Watch(ctx, name, backend.Absent)
	}
	return r, err
}

type oneAnswerLost struct {
	backend.Session
	b    *Backend
	lost atomic.Bool
}

func (s *oneAnswerLost) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	if s.b.takeLost() {
		s.lost.Store(true)
	}
	return s.Session.Put(ctx, name, value, cond)
}

func (s *oneAnswerLost) Get(ctx context.Context, name string) (backend.Record, error) {
	if s.lost.Load() {
		return backend.Record{}, backend.ErrUnavailable
	}
	return s.Session.Get(ctx, name)
}

type lateWrite struct {
	backend.Session
	b *Backend
}

func (s *lateWrite) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	if cond != nil && cond.Version != 0 && cond.Member == (backend.Member{}) {
		s.b.holdsBack(func() { _, _ = s.Session.Put(context.Background(), name, value, nil) })
	}
	return s.Session.Put(ctx, name, value, cond)
}
