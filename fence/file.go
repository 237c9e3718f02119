package fence

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A File is the path of a file that processes of one machine write to in turn, with their
// tokens. Beside PATH there are
//
//	PATH.token    the largest token, in decimal
//	PATH.lock     what a process locks (flock(2)) while it compares and writes; never remove it while one may
//	PATH.tmp, PATH.token.tmp    what a crash has left, at times
//
// PATH itself has the plain data, and need not exist. A program that only reads it needs no lock:
// it sees the old data or the new data as a whole.
//
// The folder must be on a file system of this machine. Locks work on Linux, macOS and the BSDs, and
// are tested on Linux; elsewhere every call fails with [errors.ErrUnsupported].
type File string

// Do runs do alone. If the file has seen a larger token, Do fails with a [*StaleError] instead. The
// token is on the disk before do runs. So do may change more than one file, or run a program. If this process is killed, a program that it
// has started may go on, and the next one to call Do does not wait for it: have such a program end with this process, or compare the token
// itself, as it writes.
//
// Do blocks while other calls of Do run for this File, in any process, whatever their tokens;
// so do must not call it for the same File. If ctx ends while it waits, its error wraps the
// cause of ctx. A process that stands still within Do holds up all others, until it goes on
// or is killed: the kernel unlocks the files of a process that has ended.
//
// Do returns what do returns. If do is nil, the token is only shown.
func (f File) Do(ctx context.Context, token uint64, do func() error) error {
	if err := checkToken(token); err != nil {
		return err
	}
	unlock, err := lock(ctx, string(f)+".lock")
	if err != nil {
		return fmt.Errorf("fence: lock %s: %w", f, err)
	}
	defer unlock()
	largest, err := f.largest()
	if err != nil {
		return err
	}
	if token < largest {
		return &StaleError{Resource: string(f), Token: token, Largest: largest}
	}
	if token > largest {
		if err := replace(f.tokenFile(), fmt.Appendf(nil, "%d\n", token)); err != nil {
			return fmt.Errorf("fence: note token %d: %w", token, err)
		}
	}
	// Also if the token was there already: its writer may have been killed before this.
	if err := f.syncFolder(); err != nil {
		return fmt.Errorf("fence: note token %d: %w", token, err)
	}
	if do == nil {
		return nil
	}
	return do()
}

// Write replaces the file with data, in [File.Do]. After a crash the file has the old data or the
// new data, as a whole. When Write has returned nil, the new data survive a crash of the machine.
// An existing file keeps its permissions, but not its owner; a new one has the permissions of
// [os.Create]. A symbolic link is replaced.
func (f File) Write(ctx context.Context, token uint64, data []byte) error {
	return f.Do(ctx, token, func() error {
		if err := replace(string(f), data); err != nil {
			return fmt.Errorf("fence: %w", err)
		}
		if err := f.syncFolder(); err != nil {
			return fmt.Errorf("fence: %w", err)
		}
		return nil
	})
}

// Read shows the token, and returns what is in the file: from then on nobody with a smaller token
// changes that. Its error matches [fs.ErrNotExist] if there is no file.
func (f File) Read(ctx context.Context, token uint64) ([]byte, error) {
	var data []byte
	err := f.Do(ctx, token, func() (err error) {
		data, err = os.ReadFile(string(f))
		return err
	})
	return data, err
}

func (f File) tokenFile() string { return string(f) + ".token" }

// largest returns the largest token that was seen, or 0 if none was. A file without a valid token
// is an error: to take it for 0 would let everybody in.
func (f File) largest() (uint64, error) {
	b, err := os.ReadFile(f.tokenFile())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("fence: %w", err)
	}
	text, whole := strings.CutSuffix(string(b), "\n")
	token, err := ParseToken(text)
	if err != nil || !whole {
		// It is not the caller's token that is invalid.
		return 0, fmt.Errorf("fence: %s has %.40q, and not a token and a newline: write the largest token that was used there, while no leader runs", f.tokenFile(), b)
	}
	return token, nil
}

// fsync is a variable for tests: nothing else shows that it was called, and when.
var fsync = (*os.File).Sync

func (f File) syncFolder() error {
	dir, err := os.Open(filepath.Dir(string(f)))
	if err != nil {
		return err
	}
	defer dir.Close()
	return fsync(dir)
}

// replace makes data the content of a file, in one step. The folder is still to be synced.
func replace(path string, data []byte) error {
	perm := fs.FileMode(0o666) // before the umask
	old, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	tmp := path + ".tmp"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil && old != nil {
		err = file.Chmod(old.Mode().Perm())
	}
	if err == nil {
		err = fsync(file)
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp) // the next call removes it, too
	}
	return err
}
