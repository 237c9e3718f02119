//go:build linux

package local

import (
	"bytes"
	"fmt"
	"testing"
)

// FuzzCounter says that a counter is read only if it is exactly what is written.
func FuzzCounter(f *testing.F) {
	for _, body := range []string{"1\n", "18446744073709551615\n", "007\n", "-1\n", "1", "", "1\n1\n"} {
		f.Add(seal(kindCounter, []byte(body)))
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		n, err := parseCounter(file)
		if err != nil {
			return
		}
		if again := seal(kindCounter, fmt.Appendf(nil, "%d\n", n)); !bytes.Equal(again, file) {
			t.Errorf("%q is read as %d, which is written as %q", file, n, again)
		}
	})
}

// FuzzNext says the same of what is next.
func FuzzNext(f *testing.F) {
	f.Add(formatNext(1, 1024))
	f.Add(formatNext(limit-2, limit-1))
	f.Add(seal(kindNext, []byte("1 2\n")))
	f.Add(seal(kindNext, []byte("00000000000000000002 00000000000000000001\n")))
	f.Fuzz(func(t *testing.T, file []byte) {
		next, synced, err := parseNext(file)
		if err != nil {
			return
		}
		if again := formatNext(next, synced); !bytes.Equal(again, file) {
			t.Errorf("%q is read as %d and %d, which is written as %q", file, next, synced, again)
		}
	})
}
