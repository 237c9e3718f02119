package coordtest

import (
	"os"
	"testing"

	"github.com/succession-dev/succession/internal/scratch"
)

// makeFolder makes the folder of a cluster: in the folder in, where one is named, and then it stays. Otherwise it is in the
// temporary folder if the data are to be on the disk, and else in memory, if there is room.
func (c *Cluster) makeFolder(pattern string, disk bool, in string) (err error) {
	c.keep = in != ""
	if in == "" && !disk {
		in = scratch.Memory()
	}
	c.dir, err = os.MkdirTemp(in, pattern)
	return err
}

// Folder returns a folder for a test that is, as those of servers are, in memory, if there is room: see [Cluster]. It is removed when the
// test ends.
func Folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(scratch.Memory(), "test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
