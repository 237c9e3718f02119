package zookeeperrig

import (
	"encoding/binary"
	"slices"
	"testing"
)

// A write is found wherever it stands among requests that have come at once.
func TestChanges(t *testing.T) {
	request := func(op uint32, body ...byte) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(8+len(body)))
		b = binary.BigEndian.AppendUint32(b, 1) // its number
		return append(binary.BigEndian.AppendUint32(b, op), body...)
	}
	check := slices.Concat([]byte{0, 0, 0, opCheck, 0, 255, 255, 255, 255, 0, 0, 0, 2}, []byte("/e"), []byte{0, 0, 0, 0})
	end := []byte{255, 255, 255, 255, 1, 255, 255, 255, 255}
	del := slices.Concat([]byte{0, 0, 0, opDelete, 0, 255, 255, 255, 255, 0, 0, 0, 2}, []byte("/r"), []byte{0, 0, 0, 0})
	ping := request(11)
	heartbeat := request(opMulti, slices.Concat(check, end)...)
	guarded := request(opMulti, slices.Concat(check, del, end)...)
	write := request(opDelete, slices.Concat([]byte{0, 0, 0, 2}, []byte("/r"), []byte{0, 0, 0, 0, 0, 0, 0, 0})...)
	for _, c := range []struct {
		name string
		b    []byte
		want bool
	}{
		{"nothing", nil, false},
		{"a ping", ping, false},
		{"a heartbeat", heartbeat, false},
		{"both", slices.Concat(ping, heartbeat), false},
		{"a guarded write", guarded, true},
		{"a write", write, true},
		{"a guarded write behind a heartbeat", slices.Concat(heartbeat, guarded), true},
		{"a write behind a ping and before a heartbeat", slices.Concat(ping, write, heartbeat), true},
		{"a part of a heartbeat", heartbeat[:30], false},
		{"what is no request", []byte{255, 255, 255, 255, 255}, false},
	} {
		if got := changes(c.b); got != c.want {
			t.Errorf("%s changes something: %v, want %v", c.name, got, c.want)
		}
	}
}
