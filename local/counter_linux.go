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

// next takes the next number of the folder, for a position or a version; see draw.
func (f *folder) next(ctx context.Context, h *hold, floor uint64) (uint64, error) {
	unlock, err := f.lockCounter(ctx, h)
	if err != nil {
		return 0, err
	}
	defer unlock()
	return f.draw(floor, 1)
}

// lockCounter locks the counter. The caller unlocks it before it uses a number: a process that is
// stopped while it writes to one name must not keep others from writing to the rest. Numbers are
// only compared within a name, and the caller still holds the lock of that.
func (f *folder) lockCounter(ctx context.Context, h *hold) (unlock func(), err error) {
	if err := h.try(ctx, exclusive, counterByte); err != nil {
		return nil, err
	}
	return func() { h.try(ctx, unlocked, counterByte) }, nil
}

// draw takes as many numbers as count says, and returns the first. The caller has locked the
// counter. Each number is larger than all before it, even if this process or the machine fails
// right afterwards: the counter is on disk before a number is used. floor is a number that is
// known to be taken.
func (f *folder) draw(floor uint64, count int) (first uint64, err error) {
	first, err = f.peek(floor)
	if err != nil {
		return 0, err
	}
	after := first + uint64(count)
	body := strconv.AppendUint(nil, after, 10)
	if err := f.replace("", counterName, counterByte, seal(kindCounter, append(body, '\n'))); err != nil {
		return 0, err
	}
	f.past.see(after - 1)
	return first, nil
}

// peek returns the number that next would take. It fails if that is not larger than floor
// and than every number that this backend has taken or seen.
func (f *folder) peek(floor uint64) (uint64, error) {
	const remedy = "Remove it: numbers then begin at the present time in microseconds, above all that came before"
	path := f.at("", counterName)
	floor = max(floor, f.past.seen.Load())
	var file []byte
	err := f.do(func(top dir) (err error) {
		file, err = top.read(counterName) // after seen, so it is no older than that
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		// This is larger than every number of a counter that was lost, unless the clock
		// has gone back, or more than one number was taken in each microsecond.
		return max(uint64(time.Now().UnixMicro()), floor+1), nil
	}
	if err != nil {
		return 0, err
	}
	n, err := parseCounter(file)
	if err != nil {
		return 0, fmt.Errorf("%w: %s: %w. %s", ErrDamaged, path, err, remedy)
	}
	if n <= floor {
		return 0, fmt.Errorf("%w: %s says that %d is next, but %d is in use: an old copy was put back. %s",
			backend.ErrReset, path, n, floor, remedy)
	}
	f.past.see(n - 1)
	return n, nil
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
