package consul

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/succession-dev/succession/backend"
)

// The key-value store holds, under the prefix:
//
//	E                the header of election E, or a record
//	E/<session>      the first member that a session joined in E
//	E/<session>-2    the second, and so on; -shared follows if it is shared
//
// where <session> is the first session of Consul that the session has had.
//
// A member's key is used once. So a request that arrives late cannot meet a later member
// under the same key. A record must not have a name like that of a member; see checkName.

// sessionIDLength is the length of a UUID in the form in which Consul writes it.
const sessionIDLength = 36

// key returns the key of an election or a record.
func (o *Options) key(name string) string { return o.below() + name }

// folder returns the prefix of the keys of a line's members. It ends with a slash:
// without one, the folder of "E" would also have the members of "E2".
func (o *Options) folder(line string) string { return o.key(line) + "/" }

// below returns the beginning of all keys.
func (o *Options) below() string {
	if o.Prefix == "" {
		return ""
	}
	return o.Prefix + "/"
}

// memberKey returns the name of the n-th member of a session, counted from 1.
func memberKey(session string, n int, shared bool) string {
	key := session
	if n > 1 {
		key += "-" + strconv.Itoa(n)
	}
	if shared {
		key += sharedSuffix
	}
	return key
}

const sharedSuffix = "-shared"

func isShared(key string) bool { return strings.HasSuffix(key, sharedSuffix) }

// isMemberKey reports whether s is the name of a member.
func isMemberKey(s string) bool {
	if len(s) < sessionIDLength {
		return false
	}
	for i, c := range []byte(s[:sessionIDLength]) {
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f') {
				return false
			}
		}
	}
	rest := strings.TrimSuffix(s[sessionIDLength:], sharedSuffix)
	if rest == "" {
		return true
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(rest, "-"), 10, 31)
	return err == nil && memberKey("", int(n), false) == rest
}

// checkName is [backend.CheckName], and also refuses a name that would stand in a line as
// if it were a member.
func checkName(name string) error {
	if err := backend.CheckName(name); err != nil {
		return err
	}
	if isMemberKey(name[strings.LastIndexByte(name, '/')+1:]) {
		return fmt.Errorf("%w name %q: here, members of a line have names like that; choose another", backend.ErrInvalid, name)
	}
	return nil
}

// memberPath returns the key of m in the key-value store.
func (o *Options) memberPath(m backend.Member) (string, error) {
	if err := checkName(m.Line); err != nil {
		return "", err
	}
	if err := backend.CheckName(m.Key); err != nil || strings.Contains(m.Key, "/") {
		return "", fmt.Errorf("%w member %q of %s: no member of a line has such a key", backend.ErrInvalid, m.Key, m.Line)
	}
	return o.folder(m.Line) + m.Key, nil
}

// owns reports whether this session has joined m.
func (s *session) owns(m backend.Member) bool {
	return len(m.Key) >= sessionIDLength && m.Key[:sessionIDLength] == s.id
}
