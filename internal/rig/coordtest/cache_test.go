package coordtest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// Nothing counts that was not made as a whole, and what is whole is made once.
func TestCached(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the cache folder cannot be moved")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	key, failed := []byte(t.Name()), errors.New("failed")
	var abandoned string
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := cached(t.Context(), key, "server", func(part string) error {
		abandoned = part
		write(part, "half")
		return failed
	}); !errors.Is(err, failed) {
		t.Errorf("making it half: %v", err)
	}
	at, err := cachePath(key, "server")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(at); err == nil {
		t.Fatal("what failed in the middle counts")
	}
	// Now as if its process had been killed: the part is left, and a compiler that still writes it.
	if err := os.MkdirAll(filepath.Dir(abandoned), 0o755); err != nil {
		t.Fatal(err)
	}
	write(abandoned, "half")
	made := 0
	for range 2 {
		path, err := cached(t.Context(), key, "server", func(part string) error {
			made++
			write(part, "whole")
			_ = os.WriteFile(abandoned, []byte("half"), 0o755) // its folder may be gone
			return nil
		})
		if b, readErr := os.ReadFile(path); err != nil || path != at || string(b) != "whole" {
			t.Fatalf("the server is %q, %v, at %s, %v; want the whole one at %s", b, readErr, path, err, at)
		}
	}
	left, err := filepath.Glob(at + ".part*")
	if made != 1 || len(left) > 0 || err != nil {
		t.Errorf("it was made %d times, and %v is left of its parts, %v; want once, and none", made, left, err)
	}
}

// A program that runs meanwhile can be given its place again.
func TestPlaceWhatRuns(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "sleep")
	part := path + ".part"
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if err := os.Link(path, part); err != nil {
		t.Fatal(err)
	}
	if err := place(part, path); err != nil {
		t.Error(err)
	}
}
