// Package mutant is the switch of a mutant. Command mutate compiles it into the tests, as
// a package of the module whose tests they are. A program then has all mutants in it, and
// is the mutant that $MUTANT numbers: with none it is the program as it was written.
//
// If $MUTANT_REACHED names a file, the number of each mutant that is reached is appended to
// it, once. A mutant is reached where it computes something else than the program does: an
// operator at its boundary, a condition that holds where it never would. So a test that
// does not reach a mutant cannot see it.
package mutant

import (
	"cmp"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

var (
	number = fromEnvironment()
	file   = openReached()
	told   [1 << 16]atomic.Bool // by number
)

func fromEnvironment() int {
	n, err := strconv.Atoi(os.Getenv("MUTANT"))
	if err != nil {
		return -1
	}
	return n
}

func openReached() int {
	name := os.Getenv("MUTANT_REACHED")
	if name == "" {
		return -1
	}
	fd, err := syscall.Open(name, syscall.O_WRONLY|syscall.O_APPEND|syscall.O_CREAT, 0o644)
	if err != nil {
		panic("MUTANT_REACHED: " + err.Error())
	}
	return fd
}

// On reports whether this program is mutant n.
func On(n int) bool {
	if file >= 0 {
		tell(n)
	}
	return n == number
}

// tell writes with one system call, and waits for no other goroutine: what is tested may
// be in virtual time.
func tell(n int) {
	if !told[n].Swap(true) {
		_, _ = syscall.Write(file, append(strconv.AppendInt(nil, int64(n), 10), '\n'))
	}
}

// A Number is what can be added.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

// Less is a < b, and in mutant n a <= b.
func Less[T cmp.Ordered](n int, a, b T) bool { return a < b || a == b && On(n) }

// LessEqual is a <= b, and in mutant n a < b.
func LessEqual[T cmp.Ordered](n int, a, b T) bool { return a < b || a == b && !On(n) }

// Greater is a > b, and in mutant n a >= b.
func Greater[T cmp.Ordered](n int, a, b T) bool { return a > b || a == b && On(n) }

// GreaterEqual is a >= b, and in mutant n a > b.
func GreaterEqual[T cmp.Ordered](n int, a, b T) bool { return a > b || a == b && !On(n) }

// Plus is a + b, and in mutant n a - b.
func Plus[T Number](n int, a, b T) T {
	if b != 0 && On(n) {
		return a - b
	}
	return a + b
}

// Minus is a - b, and in mutant n a + b.
func Minus[T Number](n int, a, b T) T {
	if b != 0 && On(n) {
		return a + b
	}
	return a - b
}

// Back is d, and in mutant n it points the other way.
func Back(n int, d time.Duration) time.Duration {
	if d != 0 && On(n) {
		return -d
	}
	return d
}

// Min is the least of them, and in mutant n the largest.
func Min[T cmp.Ordered](n int, first T, others ...T) T {
	return extreme(On(n), first, others)
}

// Max is the largest of them, and in mutant n the least.
func Max[T cmp.Ordered](n int, first T, others ...T) T {
	return extreme(!On(n), first, others)
}

func extreme[T cmp.Ordered](largest bool, first T, others []T) T {
	for _, x := range others {
		if largest == (x > first) {
			first = x
		}
	}
	return first
}

// Either is v, and in mutant n it is other.
func Either[T any](n int, v, other T) T {
	if On(n) {
		return other
	}
	return v
}

// Err is err, and in mutant n no error.
func Err(n int, err error) error {
	if err != nil && On(n) {
		return nil
	}
	return err
}
