package coordtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// serverPackages are the programs that the modules in the folder servers pin.
var serverPackages = map[string]struct{ module, pkg string }{
	"etcd":    {"internal/build/servers/etcd", "go.etcd.io/etcd/server/v3"},
	"etcdctl": {"internal/build/servers/etcd", "go.etcd.io/etcd/etcdctl/v3"},
	"consul":  {"internal/build/servers/consul", "github.com/hashicorp/consul"},
	apiServer: {"internal/build/servers/kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"},
	// The oldest that package kubernetes works with.
	oldestAPIServer: {"internal/build/servers/kubernetes-oldest", "k8s.io/kubernetes/cmd/kube-apiserver"},
}

const (
	apiServer       = "kube-apiserver"
	oldestAPIServer = "kube-apiserver-oldest"
)

// ServerBinaries returns the names that [ServerBinary] knows, the quickest to
// build first.
func ServerBinaries() []string {
	return []string{"etcdctl", "etcd", "consul", apiServer, oldestAPIServer}
}

// ServerBinary returns the path of the program "etcd", "etcdctl", "consul",
// "kube-apiserver" or "kube-apiserver-oldest", in the version that the modules in the folder servers pin. The first
// call for a version builds it into the user's cache folder, which takes from one minute
// (etcd) to five (Consul, kube-apiserver) and is reported on standard error; processes
// that need it at the same time wait for each other. It is safe for concurrent use.
func ServerBinary(ctx context.Context, name string) (string, error) {
	p, ok := serverPackages[name]
	if !ok {
		return "", fmt.Errorf("no server %q; known are %s", name, strings.Join(ServerBinaries(), ", "))
	}
	path, err := build(ctx, name, p.module, p.pkg)
	if err != nil {
		return "", fmt.Errorf("tests need a real %s, which is built from the module in %s: %w; "+
			"run: go run ./internal/rig/coordtest/cmd/servers %s", name, p.module, err, name)
	}
	return path, nil
}

// ServerBuilt reports whether [ServerBinary] would return at once.
func ServerBuilt(name string) bool {
	module, err := findModule(serverPackages[name].module)
	if err != nil {
		return false
	}
	key, err := moduleKey(module)
	if err != nil {
		return false
	}
	path, err := cachePath(key, name)
	if err == nil {
		_, err = os.Stat(path)
	}
	return err == nil
}

// Program builds the program in a folder of this tree that is a module of its own, and
// returns its path, which is in the user's cache folder. Go knows what has changed since the
// last call: the first takes minutes where there is much to compile, which is reported on
// standard error, and others take a second. It is safe for concurrent use.
func Program(ctx context.Context, folder string) (string, error) {
	module, err := findModule(folder)
	if err != nil {
		return "", err
	}
	name := filepath.Base(folder)
	path, err := cachePath([]byte(module), name)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	unlock, err := lockFile(ctx, path+".lock", func() {
		progress("%s: another process builds it, waiting", name)
	})
	if err != nil {
		return "", err
	}
	defer unlock()
	// Go finds in the part what it has built last, and does not link it again if nothing has changed. It writes to no file that
	// has another name.
	part := path + ".part"
	_ = os.Remove(part)
	_ = os.Link(path, part) // the first time there is none
	if err := compile(ctx, module, name, ".", part); err != nil {
		return "", err
	}
	return path, place(part, path)
}

// build returns the path of the program in the cache, and puts it there if needed.
func build(ctx context.Context, name, folder, pkg string) (string, error) {
	module, err := findModule(folder)
	if err != nil {
		return "", err
	}
	key, err := moduleKey(module)
	if err != nil {
		return "", err
	}
	return cached(ctx, key, name, func(part string) error {
		start := time.Now()
		progress("%s: building %s (once for this version)", name, pkg)
		err := compile(ctx, module, name, pkg, part)
		if err == nil {
			progress("%s: built in %v", name, time.Since(start).Round(time.Second))
		}
		return err
	})
}

// moduleKey is a key for what is built from a module that has versions and no code.
func moduleKey(module string) ([]byte, error) {
	var key bytes.Buffer
	fmt.Fprintln(&key, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for _, name := range []string{"go.mod", "go.sum"} {
		b, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return nil, err
		}
		fmt.Fprintln(&key, name, len(b))
		key.Write(b)
	}
	return key.Bytes(), nil
}

// compile builds pkg into path.
func compile(ctx context.Context, module, name, pkg, path string) error {
	start := time.Now()
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, pkg)
	cmd.Dir = module
	cmd.SysProcAttr = dieWithParent() // or the next to build it would compile the same beside it
	// Neither a workspace nor flags meant for the tests, such as -race, are to get
	// into it. A static program starts on any machine that shares the cache.
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly", "CGO_ENABLED=0")
	out, err := patiently(cmd, func() {
		progress("%s: building for %v", name, time.Since(start).Round(time.Second))
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("%w\n%s", err, tail(string(out), 20))
	}
	return nil
}

// patiently runs cmd and returns its output; it calls still from time to time.
func patiently(cmd *exec.Cmd, still func()) (out []byte, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // whose end would be the parent's, see dieWithParent
		defer runtime.UnlockOSThread()
		out, err = cmd.CombinedOutput()
	}()
	tick := time.NewTicker(20 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return out, err
		case <-tick.C:
			still()
		}
	}
}

// findModule finds a nested module in the folder of this module, from any folder
// in it: go test runs in the folder of the package.
func findModule(folder string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	start := dir
	for {
		module := filepath.Join(dir, filepath.FromSlash(folder))
		if b, err := os.ReadFile(filepath.Join(module, "go.mod")); err == nil &&
			strings.Contains(string(b), "module github.com/succession-dev/succession/"+folder+"\n") {
			return module, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("%s is not in the source tree: %w", start, errors.ErrUnsupported)
		}
		dir = parent
	}
}

// progress tells a person what a test is waiting for.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "servers: "+format+"\n", args...)
}

// tail returns the last lines of s.
func tail(s string, lines int) string {
	all := slices.Collect(strings.Lines(strings.TrimSpace(s)))
	return strings.Join(all[max(0, len(all)-lines):], "")
}
