package coordtest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestServerBinary(t *testing.T) {
	path, err := ServerBinary(t.Context(), "etcd")
	if err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode()&0o111 == 0 {
		t.Errorf("%s is no program: %v", path, err)
	}
	if again, err := ServerBinary(t.Context(), "etcd"); err != nil || again != path {
		t.Errorf("the second call returned %s, %v; want %s", again, err, path)
	}
	if !ServerBuilt("etcd") {
		t.Error("ServerBuilt does not know of it")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // on Linux; elsewhere the cache stays the same
	if runtime.GOOS == "linux" && ServerBuilt("etcd") {
		t.Error("ServerBuilt knows of a program in an empty cache")
	}
	if _, err := ServerBinary(t.Context(), "redis"); err == nil || !strings.Contains(err.Error(), "consul") {
		t.Errorf("an unknown server: %v; want an error that lists the known ones", err)
	}
}

func TestLockFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lockFile(t.Context(), path, func() { t.Error("the first had to wait") })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := lockFile(ctx, path, func() {}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the second call: %v; want to wait until the context ends", err)
	}
	waits := make(chan struct{})
	locked := make(chan error)
	go func() {
		unlock, err := lockFile(t.Context(), path, func() { close(waits) })
		if err == nil {
			unlock()
		}
		locked <- err
	}()
	<-waits
	unlock()
	if err := <-locked; err != nil {
		t.Error(err)
	}
}

// What is built again takes the place of the last, and does not change it where it is still open; what does not build leaves it.
func TestProgram(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the cache folder cannot be moved")
	}
	goCache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", strings.TrimSpace(string(goCache)))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Mkdir("p", 0o755); err != nil {
		t.Fatal(err)
	}
	var last *os.File
	for i, tt := range []struct {
		source string
		prints string // which is empty if it does not build
		isLast bool
	}{
		{`print("one")`, "one", false},
		{`print("one")`, "one", true},
		{`wrong()`, "", true},
		{`print("two")`, "two", false},
	} {
		for name, text := range map[string]string{"go.mod": "module github.com/succession-dev/succession/p\n", "main.go": "package main\n\nfunc main() { " + tt.source + " }\n"} {
			if err := os.WriteFile(filepath.Join("p", name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		path, err := Program(t.Context(), "p")
		if (err != nil) != (tt.prints == "") {
			t.Fatalf("build %d: %v", i, err)
		} else if err != nil {
			continue
		}
		if out, err := exec.Command(path).CombinedOutput(); err != nil || string(out) != tt.prints {
			t.Errorf("build %d prints %q, %v; want %q", i, out, err, tt.prints)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if last != nil {
			before, err := last.Stat()
			now, nowErr := f.Stat()
			if err != nil || nowErr != nil || os.SameFile(before, now) != tt.isLast {
				t.Errorf("build %d: that it is the same file is %v, %v, %v", i, !tt.isLast, err, nowErr)
			}
		}
		last = f
	}
}

func TestBuildFails(t *testing.T) {
	module := t.TempDir()
	if err := os.WriteFile(filepath.Join(module, "go.mod"), []byte("module example.com/none\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "nothing")
	err := compile(t.Context(), module, "nothing", "example.com/none/cmd", path)
	if err == nil || !strings.Contains(err.Error(), "example.com/none/cmd") {
		t.Errorf("compile: %v; want what the compiler says", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a build that failed left a program")
	}
}
