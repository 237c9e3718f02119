package zookeeper

import (
	"testing"

	"github.com/go-zookeeper/zk"
)

// Whoever may create znodes below a line chooses their data. A member never stands behind the transaction that
// has created its znode.
func FuzzSplit(f *testing.F) {
	f.Add([]byte("web-1"), int64(7), true)
	f.Add(pinnedData([]byte("web-1"), 5), int64(7), true)
	f.Add(pinnedData(nil, 9), int64(7), true)
	f.Add([]byte(pinMark), int64(7), true)
	f.Fuzz(func(t *testing.T, data []byte, czxid int64, pinned bool) {
		n := node{data: data, stat: &zk.Stat{Czxid: max(czxid, 1)}}
		if !pinned {
			n.stat.EphemeralOwner = 1
		}
		value, position := n.split()
		if position > uint64(n.stat.Czxid) || len(value) > len(data) || !pinned && value != string(data) {
			t.Errorf("%q, created by %d, is %q at %d", data, n.stat.Czxid, value, position)
		}
		if pinned && position > 0 {
			again := node{data: pinnedData([]byte(value), position), stat: &zk.Stat{Czxid: int64(position) + 1}}
			if v, p := again.split(); position < 1<<62 && (v != value || p != position) {
				t.Errorf("pinned as %q at %d, it is read as %q at %d", value, position, v, p)
			}
		}
	})
}
