//go:build linux

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/backend"
)

// A disk knows what a power loss may leave of a folder: what every file said when it was synced last, and which
// files were in every folder when that was synced last. What was not synced since may be there or not, and its
// contents may be those of any moment, cut off, or nothing. That is more than a file system of today does.
type disk struct {
	t    *testing.T
	base string // the folder in which the top folder is
	rng  *rand.Rand

	files   map[uint64][]byte           // by inode number: what a file said when it was synced
	folders map[uint64]map[string]inode // by inode number: what was in a folder when it was synced
	open    map[uint64]int              // descriptors of them, so that no other file gets the same number
	said    map[string][][]byte         // by name in base: what a file that is not synced has said

	skip string  // the syncs that are left out, by who asks for them: see site
	fail float64 // the part of the syncs that fail; what is then there is what is there when a process is killed
	loss func()  // called before and after each sync
	n    int     // how many syncs there were
}

// An inode says what a name means.
type inode struct {
	number uint64
	kind   uint32
}

// newDisk makes a disk, which all syncs go to until the test ends.
func newDisk(t *testing.T, rng *rand.Rand) *disk {
	d := &disk{t: t, base: t.TempDir(), rng: rng, loss: func() {},
		files: make(map[uint64][]byte), folders: make(map[uint64]map[string]inode), open: make(map[uint64]int), said: make(map[string][][]byte)}
	fsync, micros, openInotify = d.sync, func() uint64 { return 1_000_000 }, noInotify
	t.Cleanup(func() {
		for _, fd := range d.open {
			unix.Close(fd)
		}
	})
	return d
}

// keepHooks restores after the test what newDisk replaces.
func keepHooks(t *testing.T) {
	sync, now, watcher := fsync, micros, openInotify
	t.Cleanup(func() { fsync, micros, openInotify = sync, now, watcher })
}

// sync is called instead of fsync.
func (d *disk) sync(fd int) error {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		d.t.Error(err)
	}
	if path != d.base && !strings.HasPrefix(path, d.base+"/") {
		return nil
	}
	d.n++
	d.listen()
	d.loss()
	if d.rng.Float64() < d.fail {
		return unix.EIO
	}
	if where := site(path); where == d.skip {
		return nil
	}
	is := d.keep(fd)
	if is.kind == unix.S_IFDIR {
		d.folders[is.number] = d.list(fd)
	} else if d.files[is.number], err = os.ReadFile(path); err != nil {
		d.t.Error(err)
	}
	d.loss()
	return nil
}

// site says who asks for a sync, and of which file.
func site(path string) string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs[:])])
	for f, more := frames.Next(); more; f, more = frames.Next() {
		for _, name := range []string{"confirm", "store", "syncPath", "syncAbove", "place", "write"} {
			if strings.HasSuffix(f.Function, ")."+name) || strings.HasSuffix(f.Function, "dir."+name) {
				if name == "place" && filepath.Base(path) == "top" || name == "write" && strings.HasSuffix(path, fmt.Sprintf("%016x", counterByte)) {
					name += " of a counter"
				}
				return name
			}
		}
	}
	return ""
}

// keep sees to it that no other file gets the number of the one that fd is.
func (d *disk) keep(fd int) inode {
	var is unix.Stat_t
	if err := unix.Fstat(fd, &is); err != nil {
		d.t.Error(err)
	}
	if _, ok := d.open[is.Ino]; !ok {
		again, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			d.t.Error(err)
		}
		d.open[is.Ino] = again
	}
	return inode{is.Ino, is.Mode & unix.S_IFMT}
}

// list returns what is in a folder.
func (d *disk) list(fd int) map[string]inode {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // it was removed
		d.t.Error(err)
	}
	all := make(map[string]inode)
	for _, e := range entries {
		if e.Type()&fs.ModeNamedPipe != 0 {
			all[e.Name()] = inode{kind: unix.S_IFIFO}
			continue
		}
		file, err := unix.Openat(fd, e.Name(), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			d.t.Error(err)
			continue
		}
		all[e.Name()] = d.keep(file)
		unix.Close(file)
	}
	return all
}

// listen notes what the files say now that are not synced.
func (d *disk) listen() {
	err := filepath.WalkDir(d.base, func(path string, e fs.DirEntry, err error) error {
		if err == nil && (strings.HasPrefix(e.Name(), nextName) || e.Name() == lineName) {
			var data []byte
			if data, err = os.ReadFile(path); err == nil {
				d.said[e.Name()] = append(d.said[e.Name()], data)
			}
		}
		return err
	})
	if err != nil {
		d.t.Error(err)
	}
}

// after makes a folder as it may be after a power loss.
func (d *disk) after() (top string) {
	base, err := unix.Open(d.base, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	defer unix.Close(base)
	into, err := os.MkdirTemp("", "after")
	if err != nil {
		d.t.Fatal(err)
	}
	luck := []float64{0, 0.5, 1}[d.rng.IntN(3)] // that what was not synced is there
	d.fill(into, d.keep(base), luck)
	return into
}

// fill fills a folder as it may be.
func (d *disk) fill(into string, folder inode, luck float64) {
	synced, now := d.folders[folder.number], d.list(d.open[folder.number])
	for _, name := range slices.Sorted(maps.Keys(union(synced, now))) {
		is, there := synced[name]
		if d.rng.Float64() < luck {
			is, there = now[name]
		}
		if !there {
			continue
		}
		path := filepath.Join(into, name)
		var err error
		switch is.kind {
		case unix.S_IFIFO:
			err = unix.Mkfifo(path, 0o600)
		case unix.S_IFDIR:
			if err = os.Mkdir(path, 0o700); err == nil {
				d.fill(path, is, luck)
			}
		default:
			err = os.WriteFile(path, d.contents(name, is), 0o600)
		}
		if err != nil {
			d.t.Error(err)
		}
	}
}

// contents are what a file may say.
func (d *disk) contents(name string, is inode) []byte {
	if data, ok := d.files[is.number]; ok {
		return data
	}
	now, err := os.ReadFile(fmt.Sprintf("/proc/self/fd/%d", d.open[is.number]))
	if err != nil {
		d.t.Error(err)
	}
	if said := d.said[name]; len(said) > 0 && d.rng.IntN(2) == 0 {
		now = said[d.rng.IntN(len(said))]
	}
	switch d.rng.IntN(4) {
	case 0:
		return nil
	case 1:
		return now[:d.rng.IntN(len(now)+1)]
	case 2:
		return make([]byte, len(now))
	}
	return now
}

func union[K comparable, V any](a, b map[K]V) map[K]V {
	all := maps.Clone(a)
	if all == nil {
		all = make(map[K]V)
	}
	maps.Copy(all, b)
	return all
}

// A promise is what is known of all that must outlast a power loss.
type promise struct {
	largest uint64                     // of all numbers that were given
	records map[string]map[string]bool // by name: the values that the record may have; "" if there may be none
	pins    map[string]map[string]bool // by line: whether a pinned member of the value must be there, or only may
}

const none = "none"

// A load does everything that a backend can do, in random order, with several sessions.
type load struct {
	t    *testing.T
	rng  *rand.Rand
	disk *disk
	promise
	backends []*Backend
	sessions []backend.Session
	stand    []standing // unpinned members
	pinned   []backend.Member
	made     int // values
}

type standing struct {
	s backend.Session
	m backend.Member
}

var (
	recordNames = []string{"r", "a/r", "a/b/r"}
	lineNames   = []string{"e", "a/e", "a/b/e"}
)

// power does n random steps and loses the power at random moments. It returns how often the power was lost, and the first
// promise that was broken.
func power(t *testing.T, seed uint64, n int, skip string, fail float64) (losses int, broken error) {
	rng := rand.New(rand.NewPCG(seed, 0))
	l := &load{t: t, rng: rng, disk: newDisk(t, rng), promise: promise{records: make(map[string]map[string]bool), pins: make(map[string]map[string]bool)}}
	l.disk.skip, l.disk.fail = skip, fail
	lose := func(often int) {
		if broken == nil && rng.IntN(often) == 0 {
			losses++
			top := l.disk.after()
			broken = l.check(filepath.Join(top, "top"))
			os.RemoveAll(top)
		}
	}
	l.disk.loss = func() { lose(6) }
	for range 3 {
		l.session()
	}
	for range n {
		l.step()
		l.disk.listen()
		lose(2)
		if broken != nil {
			break
		}
	}
	for _, b := range l.backends {
		b.Close()
	}
	return losses, broken
}

// session opens another session, and ends one if there are enough.
func (l *load) session() {
	b, err := New(filepath.Join(l.disk.base, "top"), nil)
	if err != nil {
		l.t.Fatal(err)
	}
	s, err := b.Session(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	l.backends, l.sessions = append(l.backends, b), append(l.sessions, s)
	if len(l.sessions) > 3 {
		i := l.rng.IntN(3)
		gone := l.sessions[i]
		if l.rng.IntN(2) == 0 {
			Abandon(l.backends[i])
		}
		l.backends[i].Close()
		l.backends, l.sessions = slices.Delete(l.backends, i, i+1), slices.Delete(l.sessions, i, i+1)
		l.stand = slices.DeleteFunc(l.stand, func(st standing) bool { return st.s == gone })
	}
}

// value returns one that no other record or member has.
func (l *load) value() string {
	l.made++
	return fmt.Sprint("value ", l.made)
}

func (l *load) took(n uint64) {
	if n <= l.largest {
		l.t.Errorf("number %d after %d", n, l.largest)
	}
	l.largest = n
}

func pick[T any](l *load, from []T) T { return from[l.rng.IntN(len(from))] }

// change does something that makes one of the values what is promised. If it fails, the ones that were promised
// before may also stand. It tries once more, as another process would.
func (l *load) change(all map[string]map[string]bool, name, value string, do func(backend.Session) error) error {
	if all[name] == nil {
		all[name] = map[string]bool{none: true}
	}
	before := maps.Clone(all[name])
	all[name][value] = true
	err := do(pick(l, l.sessions))
	if errors.Is(err, backend.ErrUnavailable) {
		err = do(pick(l, l.sessions))
	}
	switch {
	case err == nil:
		all[name] = map[string]bool{value: true}
	case !errors.Is(err, backend.ErrUnavailable): // it was refused
		all[name] = before
	}
	return err
}

// pin is change for a pinned member, which is there or not.
func (l *load) pin(m backend.Member, there bool, do func(backend.Session) error) error {
	value := "there"
	if !there {
		value = none
	}
	return l.change(l.pins, m.Line+" "+m.Value, value, do)
}

func (l *load) step() {
	ctx := l.t.Context()
	unexpected := func(what string, err error) {
		if err != nil && !errors.Is(err, backend.ErrUnavailable) {
			l.t.Errorf("%s: %v", what, err)
		}
	}
	switch l.rng.IntN(12) {
	case 0:
		l.session()
	case 1, 2: // join
		s := pick(l, l.sessions)
		j, err := s.Join(ctx, pick(l, lineNames), l.value(), "")
		if unexpected("Join", err); err == nil {
			l.took(j.Position)
			l.stand = append(l.stand, standing{s, j.Member})
		}
	case 3: // leave
		if len(l.stand) > 0 {
			i := l.rng.IntN(len(l.stand))
			unexpected("Leave", l.stand[i].s.Leave(ctx, l.stand[i].m))
			l.stand = slices.Delete(l.stand, i, i+1)
		}
	case 4, 5: // put a record, perhaps on condition
		name, value := pick(l, recordNames), l.value()
		var cond *backend.If
		if len(l.stand) > 0 && l.rng.IntN(2) == 0 {
			cond = &backend.If{Member: pick(l, l.stand).m}
		}
		unexpected("Put", l.change(l.records, name, value, func(s backend.Session) error {
			v, err := s.Put(ctx, name, []byte(value), cond)
			if err == nil {
				l.took(uint64(v))
			}
			return err
		}))
	case 6: // delete one
		name := pick(l, recordNames)
		unexpected("Delete", l.change(l.records, name, none, func(s backend.Session) error { return s.Delete(ctx, name, nil) }))
	case 7, 8: // append an item
		m := backend.Member{Line: pick(l, lineNames), Value: l.value()}
		err := l.pin(m, true, func(s backend.Session) error {
			got, err := s.Append(ctx, m.Line, m.Value)
			if err == nil {
				l.took(got.Position)
				m = got
			}
			return err
		})
		if unexpected("Append", err); err == nil {
			l.pinned = append(l.pinned, m)
		}
	case 9: // take a pinned member out
		if len(l.pinned) == 0 {
			return
		}
		i := l.rng.IntN(len(l.pinned))
		m := l.pinned[i]
		remove := func(s backend.Session) error { return s.Leave(ctx, m) }
		if len(l.stand) > 0 && l.rng.IntN(2) == 0 {
			by := pick(l, l.stand).m
			remove = func(s backend.Session) error { return s.Remove(ctx, m, by) }
		}
		err := l.pin(m, false, remove)
		if unexpected("Leave of a pinned member", err); err == nil {
			l.pinned = slices.Delete(l.pinned, i, i+1)
		}
	case 10, 11: // pin one
		if len(l.stand) == 0 {
			return
		}
		i := l.rng.IntN(len(l.stand))
		st := l.stand[i]
		r, err := st.s.Get(ctx, st.m.Line)
		if err != nil {
			l.t.Error(err)
			return
		}
		hd := backend.Header{Fence: uint64(l.made)}
		l.made++
		err = l.change(l.records, st.m.Line, string(hd.Encode()), func(backend.Session) error {
			return l.pin(st.m, true, func(backend.Session) error {
				err := st.s.Pin(ctx, st.m, hd, r.Version)
				if errors.Is(err, backend.ErrVersion) { // it was written, and not synced
					err = fmt.Errorf("%w: %w", backend.ErrUnavailable, err)
				}
				return err
			})
		})
		if unexpected("Pin", err); err == nil {
			st.m.Pinned = true
			l.pinned = append(l.pinned, st.m)
			l.stand = slices.Delete(l.stand, i, i+1)
		}
	}
}

// check opens a folder as it is after a power loss, and returns what is broken.
func (l *load) check(top string) error {
	ctx := l.t.Context()
	b, err := New(top, nil)
	if err != nil {
		return err
	}
	defer b.Close()
	s, err := b.Session(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Concat(recordNames, lineNames) {
		may := l.records[name]
		r, err := s.Get(ctx, name)
		if err != nil {
			return err
		}
		value := string(r.Value)
		if r.Version == backend.Absent {
			value = none
		}
		if !may[value] && !(may == nil && value == none) {
			return fmt.Errorf("the record %s is %q, want one of %v", name, value, slices.Collect(maps.Keys(may)))
		}
	}
	for _, line := range lineNames {
		got, err := s.Line(ctx, line)
		if err != nil {
			return err
		}
		there := make(map[string]bool)
		for _, m := range got.Members {
			may := l.pins[line+" "+m.Value]
			if !m.Pinned || !may["there"] {
				return fmt.Errorf("%+v stands, and should not", m)
			}
			there[line+" "+m.Value] = true
		}
		for key, may := range l.pins {
			if strings.HasPrefix(key, line+" ") && !there[key] && !may[none] {
				return fmt.Errorf("%s was pinned, and is gone", key)
			}
		}
	}
	largest := l.largest
	for _, line := range lineNames {
		j, err := s.Join(ctx, line, "later", "")
		if err != nil {
			return err
		}
		if j.Position <= largest {
			return fmt.Errorf("position %d after %d", j.Position, largest)
		}
		largest = j.Position
		if err := s.Leave(ctx, j.Member); err != nil {
			return err
		}
		if got, err := s.Line(ctx, line); err != nil {
			return err
		} else if slices.ContainsFunc(got.Members, func(m backend.Member) bool { return !m.Pinned }) {
			return fmt.Errorf("after a Join and a Leave, %+v stand in %s", got.Members, line)
		}
	}
	for _, name := range recordNames {
		v, err := s.Put(ctx, name, []byte("later"), nil)
		if err != nil {
			return err
		}
		if uint64(v) <= largest {
			return fmt.Errorf("version %d after %d", v, largest)
		}
		largest = uint64(v)
	}
	return nil
}

// TestPowerLoss loses the power at any moment, also while something is being written, and after processes were
// killed at any moment.
func TestPowerLoss(t *testing.T) {
	keepHooks(t)
	t.Setenv("TMPDIR", t.TempDir())
	all := 0
	for seed := range uint64(6) {
		for _, fail := range []float64{0, 0.2} {
			losses, broken := power(t, seed, 50, "", fail)
			if broken != nil {
				t.Fatalf("seed %d, %v of the syncs fail: %v", seed, fail, broken)
			}
			all += losses
		}
	}
	t.Logf("the power was lost %d times", all)
}

// TestEachSyncIsNeeded leaves out one kind of sync after the other. Each time something breaks that was promised.
func TestEachSyncIsNeeded(t *testing.T) {
	keepHooks(t)
	t.Setenv("TMPDIR", t.TempDir())
	for _, skip := range []string{"write", "write of a counter", "place", "place of a counter", "syncPath", "syncAbove", "store", "confirm"} {
		t.Run(skip, func(t *testing.T) {
			for seed := range uint64(200) {
				if _, broken := power(t, seed, 60, skip, 0.2); broken != nil {
					t.Logf("seed %d: %v", seed, broken)
					return
				}
			}
			t.Error("nothing has broken")
		})
	}
}
