package protocol

import (
	"testing"

	"github.com/succession-dev/succession/internal/header"
)

// Whatever others have written into the headers of both coordinators, what is written of both is read as it was written, says that there is
// something to know of if one of them does, and changes nothing that this version knows.
func FuzzWithLater(f *testing.F) {
	for _, s := range [][2]string{
		{`{"succession":2,"needs":"x"}`, `{"succession":2,"notes":{"migrate":{"y":1,"id":"m"},"z":2}}`},
		{`{"succession":2,"notes":{"elect":{"choice":{"x":{}}},"migrate":{"y":null}}}`, `{"succession":2,"notes":{"elect":7}}`},
		{`{"succession":2,"notes":{"z":1,"z":2}}`, `{"succession":2,"gate":7,"notes":{"elect":{"choice":{"x":1,"site":"s"}}}}`},
	} {
		f.Add([]byte(s[0]), []byte(s[1]))
	}
	f.Fuzz(func(t *testing.T, old, young []byte) {
		from, err := header.Parse(old)
		if err != nil {
			return
		}
		to, err := header.Parse(young)
		if err != nil {
			return
		}
		both := WithLater(from, to)
		if again, err := header.Parse(both.Encode()); err != nil || again != both {
			t.Errorf("of %s and %s came %s, which is read as %+v, %v", old, young, both.Encode(), again, err)
		}
		if from.Stored().Understood() != nil && both.Stored().Understood() == nil {
			t.Errorf("of %s and %s came %s, which everybody understands", old, young, both.Encode())
		}
		if both.Later, both.Needs = to.Later, to.Needs; both != to {
			t.Errorf("of %s and %s came %+v", old, young, both)
		}
	})
}
