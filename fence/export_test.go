package fence

import "os"

// SetSync replaces what makes files last, until restore is called.
func SetSync(f func(*os.File) error) (restore func()) {
	old := fsync
	fsync = f
	return func() { fsync = old }
}
