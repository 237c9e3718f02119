package tree

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// The program of the README runs as it stands on every coordinator, with the one
// function that it leaves to the reader; one string says on which.
func TestReadmeProgram(t *testing.T) {
	program := readmeProgram(t)
	urls := map[string]func(t *testing.T) string{
		"local":     func(t *testing.T) string { return "local:" + t.TempDir() },
		"zookeeper": func(t *testing.T) string { return "zookeeper://" + coordtest.SharedZooKeeper(t).Addrs()[0] + "/readme" },
		"etcd":      func(t *testing.T) string { return "etcd://" + coordtest.NewEtcd(t, nil).Addrs()[0] + "/readme" },
		"consul":    func(t *testing.T) string { return "consul://" + coordtest.NewConsul(t, nil).Addrs()[0] + "/readme" },
	}
	for scheme, url := range urls {
		t.Run(scheme, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), program)
			cmd.Env = append(os.Environ(), "SUCCESSION_URL="+url(t))
			out, err := cmd.CombinedOutput()
			if err != nil || !leading.Match(out) {
				t.Errorf("it ended with %v and printed\n%s", err, out)
			}
		})
	}
}

// leading is what the reader's function prints first.
var leading = regexp.MustCompile(`(?m)^leading with token \d+$`)

// Who tells the program to stop is obeyed, and that is no failure.
func TestReadmeProgramStops(t *testing.T) {
	program := readmeProgram(t)
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), program)
			cmd.Env = append(os.Environ(), "SUCCESSION_URL=local:"+t.TempDir(), "WORK=until told")
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			out := bufio.NewReader(stdout)
			if line, err := out.ReadString('\n'); err != nil || !leading.MatchString(line) {
				t.Fatalf("it printed %q, %v", line, err)
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			rest, _ := io.ReadAll(out)
			if err := cmd.Wait(); err != nil || string(rest) != "the work has ended\n" {
				t.Errorf("it ended with %v, and printed %q at last", err, rest)
			}
		})
	}
}

// What the work says after the program was told to stop shows in the exit code too.
func TestReadmeProgramFailsAtItsEnd(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), readmeProgram(t))
	cmd.Env = append(os.Environ(), "SUCCESSION_URL=local:"+t.TempDir(), "WORK=lost at the end")
	var said strings.Builder
	cmd.Stderr = &said
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || !leading.MatchString(line) {
		t.Fatalf("it printed %q, %v", line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(said.String(), "no paper") {
		t.Errorf("it ended with %v and printed\n%s", err, &said)
	}
}

// An error that does not pass by itself shows in the exit code.
func TestReadmeProgramFails(t *testing.T) {
	program := readmeProgram(t)
	for name, c := range map[string]struct{ url, work, says string }{
		"of the work":        {url: "local:" + t.TempDir(), work: "in vain", says: "no paper"},
		"of the coordinator": {url: "local:/dev/null", says: "/dev/null"},
		"of the URL":         {url: "", says: "it is empty; say which coordinator"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), program)
			cmd.Env = append(os.Environ(), "SUCCESSION_URL="+c.url, "WORK="+c.work)
			out, err := cmd.CombinedOutput()
			if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), c.says) {
				t.Errorf("it ended with %v and printed\n%s", err, out)
			}
		})
	}
}

// readmeProgram builds the program of the README with all drivers.
func readmeProgram(t *testing.T) string {
	t.Helper()
	blocks := regexp.MustCompile("(?s)```go\n(package main\n.*?)```").FindAllStringSubmatch(read(t, "README.md"), -1)
	if len(blocks) != 1 {
		t.Fatalf("the README has %d whole programs, want 1", len(blocks))
	}
	files := map[string]string{
		"main.go": blocks[0][1],
		"reader.go": `package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	_ "github.com/succession-dev/succession/consul"
	_ "github.com/succession-dev/succession/etcd"
	_ "github.com/succession-dev/succession/local"
)

func sendReports(ctx context.Context, token uint64) error {
	fmt.Println("leading with token", token)
	switch os.Getenv("WORK") {
	case "until told":
		<-ctx.Done()
		fmt.Println("the work has ended")
		return ctx.Err()
	case "lost at the end":
		<-ctx.Done()
		return errors.New("no paper")
	case "in vain":
		return errors.New("no paper")
	}
	return nil
}
`}
	// An overlay puts the program into this module without writing to the tree.
	dir := t.TempDir()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	replace := make(map[string]string)
	for name, text := range files {
		written := filepath.Join(dir, name)
		if err := os.WriteFile(written, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(root, "internal", "readme", name)] = written
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlayFile := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program")
	out, err := exec.Command("go", "build", "-overlay", overlayFile, "-o", program, "./internal/readme").CombinedOutput()
	if err != nil {
		t.Fatalf("the program of the README does not build: %v\n%s", err, out)
	}
	return program
}

// The README names the Go version that go.mod asks for.
func TestReadmeGoVersion(t *testing.T) {
	version := regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(read(t, "go.mod"))
	if version == nil {
		t.Fatal("go.mod names no Go version; has its form changed?")
	}
	if want := "It needs Go " + version[1] + " or later."; !strings.Contains(read(t, "README.md"), want) {
		t.Errorf("the README does not say %q", want)
	}
}
