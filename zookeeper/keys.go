package zookeeper

import (
	"fmt"
	"strings"

	"github.com/succession-dev/succession/backend"
)

// path returns the znode of a record or an election.
func (o *Options) path(name string) string { return o.Prefix + "/" + name }

// parent returns the znode above path.
func parent(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

// beside returns the znode called name in the folder of path.
func beside(path, name string) string { return strings.TrimSuffix(parent(path), "/") + "/" + name }

// member returns the znode of a member.
func (o *Options) member(m backend.Member) (string, error) {
	if err := backend.CheckName(m.Line); err != nil {
		return "", err
	}
	if m.Key == "" || strings.Contains(m.Key, "/") {
		return "", fmt.Errorf("%w: %q is no member's key", backend.ErrInvalid, m.Key)
	}
	return o.path(m.Line) + "/" + m.Key, nil
}
