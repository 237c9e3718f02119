package local

import (
	"context"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/backend"
)

// A member that leaves writes nothing, so the folder of a name outlives its last member. Otherwise
// the folder of a lock that is taken now and then would be made anew each time. So a process that
// makes the folder of a new name looks at two others, at random, and removes those that are empty
// and were not used for a while. Then about twice as many folders are left as are in use, plus
// those of the last minute.

// perFolder is how many folders are looked at for each that is made.
const perFolder = 2

// perCall is for how many made folders one call of clean looks at others, at most, because the
// caller waits meanwhile. Later calls do the rest.
const perCall = 4

// unusedFor is how long a folder must be without a join, an exit and a write before it is removed.
const unusedFor = time.Minute

// A cleaner knows which folders to look at.
type cleaner struct {
	made atomic.Int64 // folders that were made, and for which clean has not looked at others yet

	mu     sync.Mutex // held by the goroutine that cleans
	names  []string   // the folders to look at, in random order
	since  int        // folders that were made since the names were listed
	listed int
}

// clean looks at other folders if some were made. It waits for nobody. The caller must hold no lock
// of a name.
func (f *folder) clean() {
	c := &f.cleaner
	if c.made.Load() == 0 || !c.mu.TryLock() {
		return
	}
	defer c.mu.Unlock()
	made := min(int(c.made.Load()), perCall)
	c.made.Add(-int64(made))
	c.since += made
	for range perFolder * made {
		// It lists them when half as many were made since as it has listed before: so a listing costs
		// each new name the same, however many there are.
		if len(c.names) == 0 && c.since >= c.listed/2 {
			c.since, c.listed = 0, 0
			c.list(f, "")
		}
		last := len(c.names) - 1
		if last < 0 {
			return
		}
		name := c.names[last]
		c.names = c.names[:last]
		c.list(f, name)
		f.removeUnused(name)
	}
}

// list adds the folders in the folder of a name.
func (c *cleaner) list(f *folder, name string) {
	d, err := f.dir(name)
	if err != nil {
		return
	}
	defer d.close()
	files, err := d.list()
	if err != nil {
		return
	}
	before := len(c.names)
	for _, file := range files {
		if strings.HasPrefix(file, "@") {
			continue
		}
		if below := path.Join(name, file); backend.CheckName(below) == nil {
			c.names = append(c.names, below)
		}
	}
	added := c.names[before:]
	c.listed += len(added)
	rand.Shuffle(len(added), func(i, j int) { added[i], added[j] = added[j], added[i] })
}

// removeUnused removes the folder of a name unless it has been used lately, has a record, or has
// members. It does nothing if the name is locked, or if there is neither @state nor @line: then the folder is
// not known to be one of this package.
func (f *folder) removeUnused(name string) {
	if !f.unused(name) {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // so that it does not wait
	claims := []claim{{name, decide}}
	h := &hold{folder: f}
	defer h.release()
	if h.enter(ctx, claims) != nil || h.lock(ctx, claims) != nil || !f.unused(name) {
		return
	}
	st, err := f.load(name)
	if err != nil || !f.hasFiles(name) || st.version != backend.Absent || f.drop(st) != nil || len(st.members) > 0 {
		return
	}
	f.sweep(&image{state: *st})
	if d, err := f.dir(name); err == nil {
		_ = d.remove(lineName)
		_ = d.remove(stateName) // if the machine fails, it may be there again, and says that nobody stands
		d.close()
		f.tidy(name)
	}
}

// hasFiles reports whether there is a @state or a @line in the folder of a name.
func (f *folder) hasFiles(name string) bool {
	d, err := f.dir(name)
	if err != nil {
		return false
	}
	defer d.close()
	has, err := d.has(stateName, lineName)
	return has && err == nil
}

// unused reports whether nothing in the folder of a name was made, replaced or removed lately.
func (f *folder) unused(name string) bool {
	d, err := f.dir(name)
	if err != nil {
		return false
	}
	defer d.close()
	var is unix.Stat_t
	return unix.Fstat(d.fd, &is) == nil && time.Since(time.Unix(is.Mtim.Unix())) > unusedFor
}
