package zookeeper

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/succession-dev/succession/backend"
)

// digits is the width of the number that ZooKeeper appends to a sequential name:
// String.format("%010d", parentCversion) in PrepRequestProcessor.java.
const digits = 10

// A place is one child of a line: its name and the number that orders it.
type place struct {
	key string
	seq int32
}

// places returns the children that are members, in order. It leaves out children without
// an appended number, which are no members. It fails with [backend.ErrLine] if candidates
// of different libraries would not agree on the order.
func places(children []string) ([]place, error) {
	line := make([]place, 0, len(children))
	for _, key := range children {
		seq, ok, err := sequence(key)
		if err != nil {
			return nil, err
		}
		if ok {
			line = append(line, place{key, seq})
		}
	}
	slices.SortFunc(line, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.seq, b.seq), strings.Compare(a.key, b.key))
	})
	for i := 1; i < len(line); i++ {
		switch a, b := line[i-1], line[i]; {
		case a.seq != b.seq || downgraded(a, b):
		case downgraded(b, a):
			line[i-1], line[i] = b, a
		default:
			return nil, lineError(b.key, "has the same number as "+strconv.Quote(a.key))
		}
	}
	return line, nil
}

// downgraded reports whether read and write are of one thread. From Curator 5.5.0 on, a thread
// that holds the write lock gives the read lock the same number, so that it holds that too
// (InterProcessReadWriteLock.java, getSortingSequence).
func downgraded(write, read place) bool {
	return write.seq == read.seq && write.seq < math.MaxInt32 &&
		strings.Contains(write.key, curatorWrite) && strings.Contains(read.key, curatorRead)
}

// sequence returns the number that ZooKeeper appended to a member's name. The name may have
// any prefix: foreign candidates use prefixes of their own. ok is false if the name does
// not end in such a number.
//
// Once the counter has overflowed, servers before 3.6 append negative numbers; later ones
// repeat the largest. From there on libraries that compare strings and libraries that
// compare numbers disagree, so nobody may lead.
func sequence(name string) (seq int32, ok bool, err error) {
	start := len(name)
	for start > 0 && '0' <= name[start-1] && name[start-1] <= '9' {
		start--
	}
	// A hyphen may belong to the prefix, as in "latch-0000000001". Behind another
	// separator it can only be a sign.
	signed := start > 1 && name[start-1] == '-' && (name[start-2] == '-' || name[start-2] == '_') ||
		start == 1 && name[0] == '-'
	switch n := len(name) - start; {
	case signed && (n == digits || n == digits-1):
		return 0, false, lineError(name, "has a negative number")
	case n < digits:
		return 0, false, nil
	case n > digits:
		return 0, false, lineError(name, "has a number of more than 10 digits")
	}
	n, err := strconv.ParseInt(name[start:], 10, 64)
	if err != nil || n > math.MaxInt32 {
		return 0, false, lineError(name, "has a number above 2147483647")
	}
	return int32(n), true, nil
}

const lineRemedy = "once nobody stands in line, delete its empty znode, and numbers begin at 0 again"

func lineError(key, why string) error {
	return fmt.Errorf("%w: member %q %s; %s", backend.ErrLine, key, why, lineRemedy)
}
