package coordtest

import (
	"context"
	"errors"
	"os"
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
