//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// earlier is the version that this one must be able to stand in line with: a commit of this
// repository. CONTRIBUTING.md says when it may move on.
const earlier = "accd3e2c"

// buildEarlier builds the command of the earlier version, and returns its file.
func buildEarlier(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	archive := exec.Command("git", "archive", "--format=tar", earlier)
	archive.Dir = "../.."
	source, err := archive.Output()
	if err != nil {
		t.Fatalf("git archive %s: %v: is this a clone with its history? If it is shallow, run git fetch --unshallow", earlier, err)
	}
	unpack := exec.Command("tar", "-x", "-C", dir)
	unpack.Stdin = strings.NewReader(string(source))
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	file := filepath.Join(dir, "earlier")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", file, ".")
	build.Dir = filepath.Join(dir, "cmd/succession")
	build.Env = append(os.Environ(), "GOWORK="+filepath.Join(dir, "internal/build/go.work"))
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build of %s: %v\n%s", earlier, err, out)
	}
	return file
}

// TestRollingUpgrade says that candidates of two versions stand in one line: leadership passes from each
// to the other, tokens grow, and each understands what the other has written.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	file := buildEarlier(t)
	was := func(args ...string) *exec.Cmd { return exec.Command(file, args...) }
	url := "etcd://" + coordtest.NewEtcd(t, nil).Addrs()[0] + "/rolling?ttl=8s&connect=30s"
	t.Run("upgrade", func(t *testing.T) { rolls(t, url, was, command) })
	t.Run("back", func(t *testing.T) { rolls(t, url, command, was) })
	t.Run("records", func(t *testing.T) {
		reads(t, url, was, command)
		reads(t, url, command, was)
	})
	t.Run("local", func(t *testing.T) { rolls(t, localURL(t), was, command) })
}

// rolls has two candidates of one version in front of two of another, and ends them one by one: the first
// and the third are told to stop, the second is killed.
func rolls(t *testing.T, url string, from, to func(...string) *exec.Cmd) {
	name := coordtest.Name(t)
	ids := []string{"from-1", "from-2", "to-1", "to-2"}
	var line []*process
	for i, id := range ids {
		version := from
		if i >= 2 {
			version = to
		}
		p := startCommand(t, version("--url", url, "run", "--ack", "--id", id, "--log", "json", name, "--", "sleep", "1000"))
		if i == 0 {
			p.event("elected")
		} else if e := p.event("waiting"); e.Behind != ids[i-1] {
			t.Errorf("%s waits behind %q, want %s", id, e.Behind, ids[i-1])
		}
		line = append(line, p)
	}
	token := uint64(0)
	for i, p := range line {
		e := p.event("started")
		if e.Token <= token {
			t.Errorf("%s has the token %d after %d", e.ID, e.Token, token)
		}
		token = e.Token
		for _, version := range []func(...string) *exec.Cmd{from, to} {
			sees(t, version("--url", url, "--timeout", "1m", "watch", name), fmt.Sprintf("%s is at work, token %d", ids[i], token))
		}
		p.signal([]syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}[i%2])
	}
}

// sees runs watch until it prints the text.
func sees(t *testing.T, watch *exec.Cmd, text string) {
	t.Helper()
	p := startCommand(t, watch)
	for {
		line, ok := p.next()
		if !ok {
			t.Fatalf("%s ends without %q", watch, text)
		}
		if strings.HasSuffix(line, text) {
			p.signal(syscall.SIGTERM)
			return
		}
	}
}

// reads checks that one version understands what the other writes: a fence, a record, and an
// item of a queue.
func reads(t *testing.T, url string, writer, reader func(...string) *exec.Cmd) {
	t.Helper()
	name := coordtest.Name(t)
	does := func(version func(...string) *exec.Cmd, want string, args ...string) {
		t.Helper()
		out, err := version(append([]string{"--url", url, "--timeout", "1m"}, args...)...).Output()
		if err != nil || want != "" && string(out) != want {
			t.Errorf("%q: %v, output %q, want %q", args, err, out, want)
		}
	}
	const fence = 1_000_000_000_000
	does(writer, "", "fence", name+"/e", "--at-least", fmt.Sprint(fence))
	p := startCommand(t, reader("--url", url, "run", "--log", "json", name+"/e", "--", "sleep", "1000"))
	if e := p.event("started"); e.Token <= fence {
		t.Errorf("token %d behind a fence of %d", e.Token, fence)
	}
	does(writer, "", "set", name+"/r", "value")
	does(reader, "value", "get", name+"/r")
	does(writer, "", "queue", "put", name+"/q", "item")
	does(reader, "item\n", "queue", "take", name+"/q", "--", "cat")
}
