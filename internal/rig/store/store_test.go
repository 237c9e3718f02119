//go:build linux

package store_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/rig/store"
)

// writer is the environment variable that makes this binary a process that writes.
const writer = "SUCCESSION_STORE_WRITER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writer); dir != "" {
		if err := write(dir, os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const each = 200 // writes of a process

// write writes under tokens that grow by two, beginning with the given one.
func write(dir, first string) error {
	s, err := store.Open(dir, clock())
	if err != nil {
		return err
	}
	defer s.Close()
	token, err := strconv.ParseUint(first, 10, 64)
	if err != nil {
		return err
	}
	for seq := range uint64(each) {
		err := s.Append(store.Write{Token: token, Seq: seq + 1, Candidate: first})
		if err != nil && !errors.Is(err, store.ErrRefused) {
			return err
		}
		token += 2
	}
	return nil
}

func clock() func() time.Duration {
	began := time.Now()
	return func() time.Duration { return time.Since(began) }
}

func TestAppend(t *testing.T) {
	dir := t.TempDir()
	now := time.Duration(0)
	tick := func() time.Duration { now++; return now }
	for _, w := range []struct {
		token, seq uint64
		refused    bool
	}{{7, 1, false}, {7, 2, false}, {9, 1, false}, {7, 3, true}, {10, 1, false}, {9, 2, true}} {
		s, err := store.Open(dir, tick) // a store remembers over restarts
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Append(store.Write{Token: w.token, Seq: w.seq, Candidate: "a"}); errors.Is(err, store.ErrRefused) != w.refused {
			t.Errorf("write %d of token %d: %v", w.seq, w.token, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	all, err := store.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got string
	for _, w := range all {
		got += fmt.Sprintf("%d/%d at %d refused %d\n", w.Token, w.Seq, w.At, w.Refused)
	}
	want := "7/1 at 1 refused 0\n7/2 at 2 refused 0\n9/1 at 3 refused 0\n7/3 at 4 refused 9\n10/1 at 5 refused 0\n9/2 at 6 refused 10\n"
	if got != want {
		t.Errorf("the log has\n%swant\n%s", got, want)
	}
}

// Processes that write at the same time lose nothing, and no token that was accepted
// is smaller than one before.
func TestProcesses(t *testing.T) {
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const processes = 4
	var all []*exec.Cmd
	for i := range processes {
		cmd := exec.Command(exe, strconv.Itoa(i+1))
		cmd.Env = append(os.Environ(), writer+"="+dir)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, cmd)
	}
	for _, cmd := range all {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	writes, err := store.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(writes) != processes*each {
		t.Errorf("the log has %d writes of %d", len(writes), processes*each)
	}
	var top uint64
	for _, w := range writes {
		if refuse := w.Token < top; refuse != (w.Refused > 0) {
			t.Errorf("a write of token %d after %d: refused %d", w.Token, top, w.Refused)
		}
		top = max(top, w.Token)
	}
}
