package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/backend"
)

// counters is the number of counters of a folder. Nearly always only the first is used. If a
// process is stopped while it has the first locked, others use the next.
//
// Each is written under its own lock, and all are read before: so of the numbers that are drawn under the
// lock of one name, each is larger than all before it, whichever counter it came from.
//
// A counter is two files. @counter says up to where its numbers are reserved, and is synced before one of them is
// used. @next says which number is the next one, and is not synced: see [folder.draw].
const counters = 4

// block is how many numbers are reserved at once.
const block = 1024

// apart is how far two counters are set apart, so that two processes do not get the same number for two
// names when one reads the counter that the other has locked.
const apart = 1 << 16

// counterPatience is how long a process waits for other processes to unlock a counter before it takes the
// next.
const counterPatience = 200 * time.Millisecond

// micros is replaced by tests, so that nothing hides the loss of a counter.
var micros = func() uint64 { return uint64(time.Now().UnixMicro()) }

// A counter is one of the counters of the folder, by its number.
type counter int

// file returns the name of its file that is synced, and next that of the other one.
func (c counter) file() string { return c.named(counterName) }
func (c counter) next() string { return c.named(nextName) }

func (c counter) named(name string) string {
	if c == 0 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, c)
}

// lockByte returns the byte of @lock for the counter.
func (c counter) lockByte() int64 {
	if c == 0 {
		return counterByte
	}
	return lockByte(c.file()) // no name contains '@'
}

// next takes the next number of the folder, for a position or a version; see draw.
func (f *folder) next(ctx context.Context, h *hold, floor uint64) (uint64, error) {
	c, unlock, err := f.lockCounter(ctx, h)
	if err != nil {
		return 0, err
	}
	defer unlock()
	return f.draw(c, floor, 1)
}

// lockCounter locks a counter, for one goroutine of this process at a time. So hundreds of its own
// writers wait in a queue, and never take each other for a stopped process. If one of them has
// found a counter locked for long, the next ones do not wait for that counter again, and use it
// only when they find it free.
//
// The caller unlocks it before it uses a number: a process that is stopped while it writes to one name
// must not keep others from writing to the rest. Numbers are only compared within a name, and the caller still
// holds the lock of that.
func (f *folder) lockCounter(ctx context.Context, h *hold) (c counter, unlock func(), err error) {
	gate, err := f.pass(ctx, counterName) // no name contains '@'
	if err != nil {
		return c, nil, err
	}
	defer func() {
		if err != nil {
			f.free(gate)
		}
	}()
	for c = range counters {
		var patience time.Duration
		if c >= f.counter {
			patience = counterPatience
		}
		wait, cancel := context.WithTimeout(ctx, patience)
		err = h.try(wait, exclusive, c.lockByte())
		cancel()
		if err == nil {
			f.counter = c
			return c, func() {
				h.try(ctx, unlocked, c.lockByte())
				f.free(gate)
			}, nil
		}
		if ctx.Err() != nil {
			return c, nil, context.Cause(ctx)
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			return c, nil, err
		}
	}
	f.counter = 0
	return c, nil, fmt.Errorf("%w: others have held the locks of all of %s for long; if processes are stopped, let them go on or end them (lsof %s)",
		backend.ErrUnavailable, f.at("", counterName), f.lock())
}

// draw takes as many numbers as count says, and returns the first. The caller has locked the
// counter. Each number is larger than all that were drawn before under the lock of the same name, even
// if this process is killed, or the machine fails, right afterwards, or has done so before. floor is a number that
// is known to be taken.
//
// Every number in use is below what some @counter says, and that is on disk. A @next may be an old one, or torn,
// if the machine has failed since, or the file system was mounted anew and has lost what was not synced. No session
// outlives either of these. So a session trusts what @next says only when it has drawn a number itself: its first
// one is the largest that any @counter says.
func (f *folder) draw(c counter, floor uint64, count int) (first uint64, err error) {
	n, err := f.peek(floor)
	if err != nil {
		return 0, err
	}
	first, from := n.next, n.nextOf
	if !f.drawn || n.lost || first <= n.floor {
		first, from = n.bound, n.boundOf
	}
	if from != c { // the process that has locked the other counter may draw the same number
		first += apart * uint64(c+1)
	}
	after := first + uint64(count)
	synced := n.synced[c]
	if after > synced {
		synced = max(after, n.bound) + block
		body := fmt.Appendf(nil, "%d\n", synced)
		if err := f.replace("", c.file(), c.lockByte(), seal(kindCounter, body), true); err != nil {
			return 0, err
		}
	}
	if err := f.note(c, after, synced, n.synced[c] > 0); err != nil {
		return 0, err
	}
	f.drawn = true
	f.past.see(after - 1)
	return first, nil
}

// numbers are what the counters say.
type numbers struct {
	bound   uint64 // the largest that is reserved; all that are in use are smaller
	boundOf counter
	next    uint64 // the one behind the largest that was drawn, as far as that is known
	nextOf  counter
	synced  [counters]uint64 // up to where those of a counter are reserved on disk, as far as that is known
	lost    bool             // there is no first counter
	floor   uint64           // a number that is known to be taken
}

// peek reads the counters. It fails if they do not say a number that is larger than floor and than every number
// that this backend has taken or seen.
func (f *folder) peek(floor uint64) (n numbers, err error) {
	n.floor = max(floor, f.past.seen.Load())
	n.lost = true
	var used uint64
	var back error
	err = f.do(func(top dir) error { // after seen, so it is no older than that
		for c := range counter(counters) {
			// @next is written after @counter, and read before it. So what it says is reserved also if somebody
			// writes both meanwhile.
			if c != 0 {
				if _, err := top.stat(c.file()); errors.Is(err, fs.ErrNotExist) { // nearly always
					continue
				}
			}
			next, synced, err := top.noted(c)
			if err != nil {
				return err
			}
			bound, err := top.count(c)
			lost := errors.Is(err, fs.ErrNotExist)
			if err != nil && !lost {
				return err
			}
			n.lost = n.lost && (c != 0 || lost)
			n.synced[c], used = synced, max(used, next)
			if synced > bound && !lost {
				back = c.back(f, bound, synced)
			}
			if next == 0 { // it is not known, and at most this
				next = bound
			}
			if bound > n.bound {
				n.bound, n.boundOf = bound, c
			}
			if next > n.next {
				n.next, n.nextOf = next, c
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // without a folder there are no counters
		return n, err
	}
	if used > 0 {
		f.past.see(used - 1)
	}
	if n.lost {
		// This is larger than every number of a counter that was lost, unless the clock
		// has gone back, or more than one number was taken in each microsecond.
		n.bound, n.boundOf = max(micros(), n.floor+1, n.bound, slices.Max(n.synced[:])), 0
		n.synced = [counters]uint64{}
		return n, nil
	}
	if back == nil && n.bound <= n.floor {
		back = n.boundOf.back(f, n.bound, n.floor)
	}
	return n, back
}

// back says that a counter has gone back.
func (c counter) back(f *folder, bound, used uint64) error {
	return fmt.Errorf("%w: %s says that numbers are reserved up to %d, but %d is in use: an old copy was put back. %s",
		backend.ErrReset, f.at("", c.file()), bound, used, c.remedy())
}

// count returns up to where a counter has reserved numbers.
func (d dir) count(c counter) (uint64, error) {
	file, err := d.read(c.file())
	if err != nil {
		return 0, err
	}
	n, err := parseCounter(file)
	if err != nil {
		return 0, fmt.Errorf("%w: %s: %w. %s", ErrDamaged, d.path(c.file()), err, c.remedy())
	}
	return n, nil
}

// noted returns what the @next of a counter says. Both are 0 if that cannot be read: a power loss may have torn it.
func (d dir) noted(c counter) (next, synced uint64, err error) {
	file, err := d.read(c.next())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, 0, err
	}
	if next, synced, err = parseNext(file); err != nil {
		return 0, 0, nil
	}
	return next, synced, nil
}

// note writes the @next of a counter. If the file was read, note changes it in place, which takes a tenth of the time of a new one:
// the file is short enough for one write, and if that is torn nevertheless, the file says nothing. Otherwise it may be torn, or
// a file from elsewhere: that is replaced, and not written to.
func (f *folder) note(c counter, next, synced uint64, read bool) error {
	data := formatNext(next, synced)
	done := false
	err := f.do(func(top dir) error {
		if !read {
			return nil
		}
		fd, is, err := top.open(c.next(), unix.O_RDWR, unix.S_IFREG)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if is.Size != int64(len(data)) || is.Nlink != 1 {
			return nil
		}
		n, err := unix.Pwrite(fd, data, 0)
		if err == nil && n != len(data) {
			err = unix.EIO
		}
		if err != nil {
			return top.fail("write", c.next(), err)
		}
		done = true
		return nil
	})
	if err != nil || done {
		return err
	}
	return f.replace("", c.next(), c.lockByte(), data, false)
}

func (c counter) remedy() string {
	what := "it"
	if c != 0 {
		what = "it and " + counterName
	}
	return "Remove " + what + ": numbers then begin at the present time in microseconds, above all that came before"
}

// see remembers that n was taken.
func (p *past) see(n uint64) {
	for {
		old := p.seen.Load()
		if n <= old || p.seen.CompareAndSwap(old, n) {
			return
		}
	}
}
