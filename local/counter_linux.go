package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend"
)

// counters is the number of counters of a folder. Nearly always only the first is used. If a
// process is stopped while it has the first locked, others use the next.
//
// Each is written under its own lock, and all are read before: so of the numbers that are drawn under the
// lock of one name, each is larger than all before it, whichever counter it came from.
const counters = 4

// apart is how far two counters are set apart, so that two processes do not get the same number for two
// names when one reads the counter that the other has locked.
const apart = 1 << 16

// counterPatience is how long a process waits for other processes to unlock a counter before it takes the
// next.
const counterPatience = 200 * time.Millisecond

// A counter is one of the counters of the folder, by its number.
type counter int

func (c counter) file() string {
	if c == 0 {
		return counterName
	}
	return fmt.Sprintf("%s-%d", counterName, c)
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
		if wait.Err() == nil {
			return c, nil, err
		}
	}
	f.counter = 0
	return c, nil, fmt.Errorf("%w: others have held the locks of all of %s for long; if processes are stopped, let them go on or end them (lsof %s)",
		backend.ErrUnavailable, f.at("", counterName), f.lock())
}

// draw takes as many numbers as count says, and returns the first. The caller has locked the
// counter. Each number is larger than all that were drawn before under the lock of the same name, even
// if this process or the machine fails right afterwards: the counter is on disk before a number is used.
// floor is a number that is known to be taken.
func (f *folder) draw(c counter, floor uint64, count int) (first uint64, err error) {
	first, from, err := f.peek(floor)
	if err != nil {
		return 0, err
	}
	if from != c { // the process that has locked the other counter may draw the same number
		first += apart * uint64(c+1)
	}
	after := first + uint64(count)
	body := strconv.AppendUint(nil, after, 10)
	if err := f.replace("", c.file(), c.lockByte(), seal(kindCounter, append(body, '\n'))); err != nil {
		return 0, err
	}
	f.past.see(after - 1)
	return first, nil
}

// peek returns the largest number that is known to be free, and the counter that says so. It fails if that
// is not larger than floor and than every number that this backend has taken or seen.
func (f *folder) peek(floor uint64) (n uint64, from counter, err error) {
	floor = max(floor, f.past.seen.Load())
	lost := true                     // there is no first counter
	err = f.do(func(top dir) error { // after seen, so it is no older than that
		for c := range counter(counters) {
			there, err := top.count(c)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			lost = lost && (c != 0 || err != nil)
			if there > n {
				n, from = there, c
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // without a folder there are no counters
		return 0, 0, err
	}
	if lost {
		// This is larger than every number of a counter that was lost, unless the clock
		// has gone back, or more than one number was taken in each microsecond.
		return max(uint64(time.Now().UnixMicro()), floor+1, n), 0, nil
	}
	if n <= floor {
		return 0, 0, fmt.Errorf("%w: %s says that %d is next, but %d is in use: an old copy was put back. %s",
			backend.ErrReset, f.at("", from.file()), n, floor, from.remedy())
	}
	f.past.see(n - 1)
	return n, from, nil
}

// count returns the number that a counter says is next.
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

func (c counter) remedy() string {
	what := "it"
	if c != 0 {
		what = "it and " + counterName
	}
	return "Remove " + what + ": numbers then begin at the present time in microseconds, above all that came before"
}

// parseCounter reads the contents of a counter.
func parseCounter(file []byte) (uint64, error) {
	body, err := unseal(kindCounter, file)
	if err != nil {
		return 0, err
	}
	digits, ok := strings.CutSuffix(string(body), "\n")
	if !ok {
		return 0, errors.New("it is cut off")
	}
	return parseNumber(digits)
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
