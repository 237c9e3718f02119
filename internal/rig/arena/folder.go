//go:build linux

package arena

import (
	"fmt"
	"os"
	"path/filepath"
)

// Folder returns the absolute path of an empty folder for a run, which it creates where
// there is none. Without a name it is a new temporary one.
func Folder(name string) (string, error) {
	if name == "" {
		return os.MkdirTemp("", "chaos-")
	}
	dir, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	files, err := os.ReadDir(dir)
	if err == nil && len(files) > 0 {
		err = fmt.Errorf("%s is not empty", dir)
	}
	return dir, err
}
