package zookeeper

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/succession-dev/succession/backend"
)

// A Format says what the names of members look like before the number that ZooKeeper
// appends. A candidate of another library can share a line only with members whose names
// it can read.
type Format string

const (
	// ElectionSupport is n_, as in ZooKeeper's documented recipe and in
	// LeaderElectionSupport, which reads nothing longer (LeaderElectionSupport.java,
	// toLeaderOffers: what follows the second character must be a number).
	ElectionSupport Format = "election-support"

	// CuratorLatch is _c_<uuid>-latch-, as in Curator's LeaderLatch, which orders by
	// what follows the last "latch-" (LeaderLatch.java, LOCK_NAME).
	CuratorLatch Format = "curator-latch"

	// CuratorSelector is _c_<uuid>-lock-, as in Curator's LeaderSelector and
	// InterProcessMutex (InterProcessMutex.java, LOCK_NAME). The Lock of go-zookeeper reads
	// these names too (lock.go, parseSeq).
	CuratorSelector Format = "curator-selector"

	// CuratorReadWrite is _c_<uuid>-__WRIT__ and, for shared members, _c_<uuid>-__READ__,
	// as in Curator's InterProcessReadWriteLock, which orders by what follows the last of
	// these (InterProcessReadWriteLock.java, SortingLockInternalsDriver).
	CuratorReadWrite Format = "curator-rw"

	// Kazoo is <32 hex digits>__lock__, as in kazoo's Election and Lock, which see no
	// other names (kazoo/recipe/lock.py, _contenders_re).
	Kazoo Format = "kazoo"

	// KazooReadWrite is like Kazoo and, for shared members, <32 hex digits>__rlock__, as in kazoo's
	// WriteLock and ReadLock. It differs from Kazoo because Election and Lock do not see shared
	// members, and would lead beside them.
	KazooReadWrite Format = "kazoo-rw"
)

// formats are all formats, in the order in which errors list them.
var formats = []Format{ElectionSupport, CuratorLatch, CuratorSelector, CuratorReadWrite, Kazoo, KazooReadWrite}

// How names end, before the number, in lines with shared members.
const (
	recipeRead   = "read-" // in the documented recipe; a random part and a hyphen may stand in front
	curatorRead  = "__READ__"
	curatorWrite = "__WRIT__"
	kazooRead    = "__rlock__"
)

// isShared reports whether the name is that of a shared member. The name ends in digits.
func isShared(name string) bool {
	prefix := strings.TrimRight(name, "0123456789")
	return prefix == recipeRead || strings.HasSuffix(prefix, "-"+recipeRead) ||
		strings.HasSuffix(prefix, curatorRead) || strings.HasSuffix(prefix, kazooRead)
}

// namePrefix returns the beginning of the next member's name. It has a random part if the other
// library uses one to find its own members. This package finds its own by the znode's owner.
func (o *Options) namePrefix() string {
	switch o.As {
	case CuratorLatch:
		return curatorMark() + "latch-"
	case CuratorSelector:
		return curatorMark() + "lock-"
	case CuratorReadWrite:
		return curatorMark() + curatorWrite
	case Kazoo, KazooReadWrite:
		return kazooMark() + "__lock__"
	}
	if o.NamePrefix != "" {
		return o.NamePrefix
	}
	return "n_"
}

// sharedPrefix is namePrefix for a shared member. It fails if the other library would not see
// that.
func (o *Options) sharedPrefix() (string, error) {
	switch o.As {
	case "":
		return recipeRead, nil
	case CuratorReadWrite:
		return curatorMark() + curatorRead, nil
	case KazooReadWrite:
		return kazooMark() + kazooRead, nil
	}
	return "", fmt.Errorf("%w: candidates of as=%s do not see shared members; those of as=%s and as=%s do, and so does a line without as",
		errors.ErrUnsupported, o.As, CuratorReadWrite, KazooReadWrite)
}

// ourMark begins the random part of our names, where they have one.
const ourMark = "5ecc5ecc"

// mayStay reports whether the member with that name may be one of another library, which stays in line
// when the election moves. A name without a random part does not show that. If [Options] say how
// others name their members, a member with such a name may be one of theirs.
func (o *Options) mayStay(name string) bool {
	if strings.HasPrefix(name, curatorBegin+ourMark) || strings.HasPrefix(name, ourMark) {
		return false
	}
	prefix := strings.TrimRight(name, "0123456789")
	return o.As != "" || o.NamePrefix != "" || prefix != o.namePrefix() && prefix != recipeRead
}

const curatorBegin = "_c_"

func curatorMark() string { return curatorBegin + uuid() + "-" }

func kazooMark() string { return strings.ReplaceAll(uuid(), "-", "") }

// checkNames checks As and NamePrefix. It refuses names that cannot be told from the number
// behind them.
func (o *Options) checkNames() error {
	known := o.As == ""
	for _, f := range formats {
		known = known || f == o.As
	}
	switch {
	case !known:
		return fmt.Errorf("%w name format as=%s: known are %v", backend.ErrInvalid, o.As, formats)
	case o.As != "" && o.NamePrefix != "":
		return fmt.Errorf("%w: as=%s and name-prefix=%s both say what members are called; give one of them", backend.ErrInvalid, o.As, o.NamePrefix)
	}
	prefix := o.namePrefix()
	if err := backend.CheckName(prefix); err != nil || strings.Contains(prefix, "/") {
		return fmt.Errorf("%w name-prefix %q: use letters, digits, '.', '_' and '-'", backend.ErrInvalid, prefix)
	}
	if isShared(prefix) {
		return fmt.Errorf("%w name-prefix %q: the names of shared members are such", backend.ErrInvalid, prefix)
	}
	seq, ok, err := sequence(prefix + "0000000007")
	_, _, negative := sequence(prefix + "-000000007")
	if err != nil || !ok || seq != 7 || negative == nil {
		return fmt.Errorf("%w name-prefix %q: it must end with '_', or with '-' behind a letter, a digit or '.', so that the sign of a number can be told",
			backend.ErrInvalid, prefix)
	}
	return nil
}

// uuid returns a UUID (RFC 9562, version 4) that begins with ourMark and is random behind it.
func uuid() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	hex.Decode(b[:], []byte(ourMark))
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	s := hex.EncodeToString(b[:])
	return strings.Join([]string{s[:8], s[8:12], s[12:16], s[16:20], s[20:]}, "-")
}
