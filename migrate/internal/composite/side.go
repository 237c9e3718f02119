package composite

import (
	"fmt"
	"strings"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// Keys of members on To begin with this, because both coordinators may have a member with the same
// key.
const toPrefix = "to:"

// tag returns a member of one coordinator as the composite names it.
func tag(sd protocol.Side, m backend.Member) backend.Member {
	if sd == protocol.To && m.Key != "" {
		m.Key = toPrefix + m.Key
	}
	return m
}

// untag returns a member as its coordinator names it, and which coordinator that is.
func untag(m backend.Member) (backend.Member, protocol.Side) {
	if key, ok := strings.CutPrefix(m.Key, toPrefix); ok {
		m.Key = key
		return m, protocol.To
	}
	return m, protocol.From
}

var errOtherSide = fmt.Errorf("%w: it is kept by the other coordinator by now", backend.ErrVersion)

// tagVersion returns a version of one coordinator with the side in its lowest bit, so that
// it is never taken for one of the other.
func tagVersion(sd protocol.Side, v backend.Version) backend.Version {
	if v <= 0 {
		return v
	}
	return v<<1 | backend.Version(sd)
}

// untagVersion returns the coordinator's own version; false if v belongs to the other one.
func untagVersion(sd protocol.Side, v backend.Version) (backend.Version, bool) {
	if v <= 0 {
		return v, true
	}
	return v >> 1, protocol.Side(v&1) == sd && v > 1
}
