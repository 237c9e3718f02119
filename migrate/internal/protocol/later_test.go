package protocol

import (
	"testing"

	"github.com/succession-dev/succession/backend"
)

// Whatever others have written into the headers of both coordinators, what is written of both is read as it was written, says that there is
// something to know of if one of them does, and changes nothing that this version knows.
func FuzzWithLater(f *testing.F) {
	for _, s := range [][2]string{
		{`{"succession":1,"needs":"x"}`, `{"succession":1,"migration":{"y":1,"id":"m"},"z":2}`},
		{`{"succession":1,"choice":{"x":{}},"migration":{"y":null}}`, `{"succession":1,"choice":7}`},
		{`{"succession":1,"z":1,"z":2}`, `{"succession":1,"choice":{"x":1,"site":"s"}}`},
	} {
		f.Add([]byte(s[0]), []byte(s[1]))
	}
	f.Fuzz(func(t *testing.T, old, young []byte) {
		from, err := backend.ParseHeader(old)
		if err != nil {
			return
		}
		to, err := backend.ParseHeader(young)
		if err != nil {
			return
		}
		both := WithLater(from, to)
		if again, err := backend.ParseHeader(both.Encode()); err != nil || again != both {
			t.Errorf("of %s and %s came %s, which is read as %+v, %v", old, young, both.Encode(), again, err)
		}
		if from.Understood() != nil && both.Understood() == nil {
			t.Errorf("of %s and %s came %s, which everybody understands", old, young, both.Encode())
		}
		if both.Later = to.Later; both != to {
			t.Errorf("of %s and %s came %+v", old, young, both)
		}
	})
}
