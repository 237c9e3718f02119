package coordtest

import "os"

// makeFolder makes the folder of a cluster: in the folder in, where one is named, and then it stays. Otherwise it is in the
// temporary folder if the data are to be on the disk, and else in memory, if there is room.
func (c *Cluster) makeFolder(pattern string, disk bool, in string) (err error) {
	c.keep = in != ""
	if in == "" && !disk {
		in = memoryFolder()
	}
	c.dir, err = os.MkdirTemp(in, pattern)
	return err
}
