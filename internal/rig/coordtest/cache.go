package coordtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// cached returns the path of the file or folder that is made once from what key says, and
// kept in the user's cache folder. make makes it in part, which takes its place when it is
// complete; processes that need it at the same time wait for each other.
func cached(ctx context.Context, key []byte, name string, make func(part string) error) (string, error) {
	path, err := cachePath(key, name)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	unlock, err := lockFile(ctx, path+".lock", func() {
		progress("%s: another process makes it, waiting", name)
	})
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil { // made while this process waited
		return path, nil
	}
	// A process that was killed leaves a part behind, and a compiler that may still write it: no
	// two have the same.
	abandoned, err := filepath.Glob(path + ".part*")
	if err != nil {
		return "", err
	}
	for _, folder := range abandoned {
		if err := os.RemoveAll(folder); err != nil {
			return "", err
		}
	}
	folder, err := os.MkdirTemp(filepath.Dir(path), name+".part-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(folder)
	part := filepath.Join(folder, name)
	if err := make(part); err != nil {
		return "", err
	}
	return path, place(part, path)
}

// place gives a file or folder that is whole its place. All of it is on the disk before: what is there after a loss of power is
// taken for whole.
func place(part, path string) error {
	err := filepath.WalkDir(part, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		f, err := os.Open(name) // not to write: it may be a program that runs
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Sync()
	})
	if err != nil {
		return err
	}
	return os.Rename(part, path)
}

// cachePath is where in the user's cache folder a name has its place.
func cachePath(key []byte, name string) (string, error) {
	cache, err := os.UserCacheDir()
	sum := sha256.Sum256(key)
	return filepath.Join(cache, "succession", hex.EncodeToString(sum[:])[:16], name), err
}

// filesKey is a key for what is made from files that are too large to be read each time.
// An entry that ends in an asterisk is all jars of a folder, as in a class path.
func filesKey(files ...string) ([]byte, error) {
	var key bytes.Buffer
	for _, file := range files {
		all := []string{file}
		if folder, ok := strings.CutSuffix(file, "*"); ok {
			all, _ = filepath.Glob(filepath.Join(folder, "*.jar")) // the pattern is good
		}
		for _, name := range all {
			info, err := os.Stat(name)
			if err != nil {
				return nil, err
			}
			fmt.Fprintln(&key, name, info.Size(), info.ModTime().UnixNano())
		}
	}
	return key.Bytes(), nil
}
