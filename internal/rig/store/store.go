//go:build linux

package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ErrRefused is returned for a write whose token is smaller than one that the store
// has seen.
var ErrRefused = errors.New("a larger token has been seen")

// A Write is one line of the log. Token and Seq together are its name.
type Write struct {
	At        time.Duration `json:"at"` // when the store decided, on the clock that all share
	Token     uint64        `json:"token"`
	Seq       uint64        `json:"seq"` // counts the writes of a term
	Candidate string        `json:"candidate"`
	// Checked is just before the writer asked whether it still led, and was told so.
	Checked time.Duration `json:"checked"`
	// Refused is the larger token for which the write was refused; 0 where it was
	// accepted.
	Refused uint64 `json:"refused,omitempty"`
}

// A Store is a handle on a folder. It is safe for concurrent use, and other
// processes may use the same folder.
type Store struct {
	clock func() time.Duration

	mu         sync.Mutex // flock(2) is between open files, not goroutines
	log, token *os.File
}

// Open opens the store in a folder, which it creates where there is none. The clock
// must be one that all processes share. The caller closes the store.
func Open(dir string, clock func() time.Duration) (*Store, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	token, err := os.OpenFile(filepath.Join(dir, "token"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		_ = log.Close() // nothing was written
		return nil, err
	}
	return &Store{clock: clock, log: log, token: token}, nil
}

// Close releases the handle.
func (s *Store) Close() error { return errors.Join(s.log.Close(), s.token.Close()) }

// Append writes w, whose At and Refused it sets, unless a larger token has been seen:
// it then fails with [ErrRefused], and the log says so. It blocks while another
// process writes.
func (s *Store) Append(w Write) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := lock(s.log); err != nil {
		return fmt.Errorf("lock %s: %w", s.log.Name(), err)
	}
	defer unix.Flock(int(s.log.Fd()), unix.LOCK_UN)

	largest, err := s.largest()
	if err != nil {
		return err
	}
	w.At, w.Refused = s.clock(), 0
	switch {
	case w.Token < largest:
		w.Refused = largest
	case w.Token > largest:
		// First, so that a token that was accepted has been seen.
		if _, err := s.token.WriteAt(fmt.Appendf(nil, "%020d\n", w.Token), 0); err != nil {
			return err
		}
	}
	line, err := json.Marshal(w)
	if err != nil {
		return err
	}
	if _, err := s.log.Write(append(line, '\n')); err != nil {
		return err
	}
	if w.Refused > 0 {
		return fmt.Errorf("store: write %d of token %d is refused: %w: %d", w.Seq, w.Token, ErrRefused, w.Refused)
	}
	return nil
}

// lock blocks until this process alone may write.
func lock(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != unix.EINTR {
			return err
		}
	}
}

// largest returns the largest token that a write has carried; 0 for none.
func (s *Store) largest() (uint64, error) {
	b, err := io.ReadAll(io.NewSectionReader(s.token, 0, 64))
	if err != nil || len(b) == 0 {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
}

// Read returns the writes of the store in a folder, in the order in which they were
// decided.
func Read(dir string) ([]Write, error) {
	b, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	var out []Write
	dec := json.NewDecoder(bytes.NewReader(b))
	for dec.More() {
		var w Write
		if err := dec.Decode(&w); err != nil {
			return nil, fmt.Errorf("store: write %d of %s: %w", len(out)+1, dir, err)
		}
		out = append(out, w)
	}
	return out, nil
}
