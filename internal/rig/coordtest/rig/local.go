package rig

import (
	"os"
	"path/filepath"
	"slices"
)

// DropFolder deletes an election of package local in the folder dir, as an operator can. It takes
// out the last member first, so that nobody stands at the head of the line meanwhile who did not
// before: an operator of a coordinator with servers deletes all in one step.
func DropFolder(dir, election string) error {
	at := filepath.Join(dir, filepath.FromSlash(election))
	members, err := filepath.Glob(filepath.Join(at, "@n_*"))
	if err != nil {
		return err
	}
	slices.Sort(members)
	for _, m := range slices.Backward(members) {
		if err := os.Remove(m); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return os.RemoveAll(at)
}
