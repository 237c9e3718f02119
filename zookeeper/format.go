package zookeeper

import (
	"crypto/rand"
	"encoding/hex"
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
	// InterProcessMutex (InterProcessMutex.java, LOCK_NAME).
	CuratorSelector Format = "curator-selector"

	// Kazoo is <32 hex digits>__lock__, as in kazoo's Election and Lock, which see no
	// other names (kazoo/recipe/lock.py, _contenders_re).
	Kazoo Format = "kazoo"
)

// formats are all formats, in the order in which errors list them.
var formats = []Format{ElectionSupport, CuratorLatch, CuratorSelector, Kazoo}

// namePrefix returns what the next member's name begins with. It has a random part if the
// other library uses one to find its own members. This package finds its own by the
// znode's owner.
func (o *Options) namePrefix() string {
	switch o.As {
	case CuratorLatch:
		return "_c_" + uuid() + "-latch-"
	case CuratorSelector:
		return "_c_" + uuid() + "-lock-"
	case Kazoo:
		return strings.ReplaceAll(uuid(), "-", "") + "__lock__"
	}
	if o.NamePrefix != "" {
		return o.NamePrefix
	}
	return "n_"
}

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
		return fmt.Errorf("%w name-prefix %q: the names of shared members begin so", backend.ErrInvalid, prefix)
	}
	seq, ok, err := sequence(prefix + "0000000007")
	_, _, negative := sequence(prefix + "-000000007")
	if err != nil || !ok || seq != 7 || negative == nil {
		return fmt.Errorf("%w name-prefix %q: it must end with '_', or with '-' behind a letter, a digit or '.', so that the sign of a number can be told",
			backend.ErrInvalid, prefix)
	}
	return nil
}

// uuid returns a random UUID (RFC 9562, version 4).
func uuid() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	s := hex.EncodeToString(b[:])
	return strings.Join([]string{s[:8], s[8:12], s[12:16], s[16:20], s[20:]}, "-")
}
