//go:build linux

package local

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// Each folder that is made for the top folder is on the disk, by its entry in the one above, before anything is written below:
// otherwise all would be gone after a power loss, and tokens would begin anew.
func TestFoldersAboveAreSynced(t *testing.T) {
	above := t.TempDir()
	var synced []string
	fsync = func(fd int) error {
		path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		if err != nil {
			t.Error(err)
		}
		synced = append(synced, path)
		return unix.Fsync(fd)
	}
	t.Cleanup(func() { fsync = unix.Fsync })
	f := newFolder(filepath.Join(above, "a/b"), false, new(past))
	if err := f.makeTop(); err != nil {
		t.Fatal(err)
	}
	if err := f.close(); err != nil {
		t.Fatal(err)
	}
	if want := []string{above, filepath.Join(above, "a")}; !slices.Equal(synced, want) {
		t.Errorf("synced were %q, want %q", synced, want)
	}
}
