// Package rendezvous divides names among several, so that a change of the several moves only the
// names that it must move.
package rendezvous

import (
	"bytes"
	"crypto/sha256"
)

// Choose returns the one among several to which the name falls, or "" if among is empty: the one
// whose hash together with the name is the largest (rendezvous hashing). The caller needs to know
// only the several, in any order. None of them may contain a newline, which keeps it apart from the
// name.
//
// What Choose returns must never change: processes of different versions must agree.
func Choose(name string, among []string) (chosen string) {
	var largest [sha256.Size]byte
	for _, one := range among {
		hash := sha256.Sum256([]byte(one + "\n" + name))
		if bytes.Compare(hash[:], largest[:]) > 0 {
			chosen, largest = one, hash
		}
	}
	return chosen
}
