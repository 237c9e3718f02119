//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A shell is a bash to which commands are given one by one.
type shell struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Scanner
}

// newShell starts a shell in which "succession" is this program; what is started in it
// ends with the test.
func newShell(t *testing.T) *shell {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\n%s=1 GORACE=atexit_sleep_ms=0 exec %s \"$@\"\n", asCommand, self)
	if err := os.WriteFile(filepath.Join(bin, "succession"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash")
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	sh := &shell{t, in, bufio.NewScanner(out)}
	t.Cleanup(func() {
		sh.run("kill $(jobs -p); wait")
		in.Close()
		cmd.Wait()
	})
	return sh
}

// run returns what the command prints; nothing for one in the background.
func (sh *shell) run(command string) string {
	sh.t.Helper()
	const end = "-- end of output --"
	fmt.Fprintf(sh.in, "%s\necho; echo '%s'\n", command, end)
	var b strings.Builder
	for sh.out.Scan() {
		if sh.out.Text() == end {
			return strings.TrimSuffix(b.String(), "\n")
		}
		b.WriteString(sh.out.Text() + "\n")
	}
	sh.t.Fatalf("the shell ended in %s: %v", command, sh.out.Err())
	return ""
}

// until repeats the command until what it prints is as wanted, and returns what that was.
func (sh *shell) until(command string, wanted func(printed string) bool) (printed string, ok bool) {
	sh.t.Helper()
	for begin := time.Now(); time.Since(begin) < patience; {
		if printed = sh.run(command); wanted(printed) {
			return printed, true
		}
		sh.run("sleep 0.1")
	}
	return printed, false
}

var (
	console = regexp.MustCompile("(?s)```console\n(.*?)```")
	starts  = regexp.MustCompile(`^succession run --url (\S+) --id (\S+) .* & \w+=\$!$`)
	instant = regexp.MustCompile(`\b(n_)?\d{16}\b`)
)

// What docs/migration.md shows is what the commands print, but for numbers and IDs that
// are made up. Each step can be taken again, so it is, until those in the background have
// come as far as is shown.
func TestDocsOfMigrate(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(docs + "migration.md")
	if err != nil {
		t.Fatal(err)
	}
	sh := newShell(t)
	folder := t.TempDir()
	settle := func(s string) string {
		s = strings.ReplaceAll(s, folder, "/tmp")
		return madeUp.ReplaceAllString(instant.ReplaceAllString(s, "${1}N"), "migration ID")
	}
	steps := 0
	for _, block := range console.FindAllStringSubmatch(string(b), -1) {
		for _, part := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			command, want, _ := strings.Cut(part, "\n")
			want = settle(strings.TrimSuffix(want, "\n"))
			real := strings.ReplaceAll(command, "/tmp", folder)
			switch started := starts.FindStringSubmatch(command); {
			case strings.HasPrefix(command, "succession migrate "):
				got, ok := sh.until(real, func(printed string) bool { return settle(strings.TrimSuffix(printed, "\n")) == want })
				if !ok {
					t.Fatalf("%s prints\n%s\nand the page shows\n%s", command, settle(got), want)
				}
				steps++
			case started != nil: // a person is slower than it is
				sh.run(real)
				if _, ok := sh.until("succession line reports --url "+started[1], func(line string) bool { return strings.Contains(line, started[2]) }); !ok {
					t.Fatalf("%s does not stand in line", started[2])
				}
			case strings.HasPrefix(command, "kill "):
				sh.run(real + "; wait " + strings.TrimPrefix(real, "kill "))
			default:
				sh.run(real)
			}
		}
	}
	if steps < 7 {
		t.Errorf("the page shows %d steps", steps)
	}
}
