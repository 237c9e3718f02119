package tree

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
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

// The README is read to its end by who meets this project.
func TestReadmeIsShort(t *testing.T) {
	if n := len(strings.Fields(read(t, "README.md"))); n > 1300 {
		t.Errorf("the README has %d words, and 1300 are what it may have", n)
	}
}

// The program of the README runs in a module that has nothing else, as two processes: when the first is told to stop,
// which is no failure, the second leads. Its folder alone is not the reader's, where others may elect.
func TestReadmeProgram(t *testing.T) {
	program := readmeProgram(t, `"local:"`, fmt.Sprintf("%q", "local:"+t.TempDir()))
	first := start(t, program)
	tokens := []string{first.leads(t)}
	second := start(t, program)
	first.stop(t, os.Interrupt)
	tokens = append(tokens, second.leads(t))
	second.stop(t, os.Interrupt)
	if tokens[0] == tokens[1] {
		t.Errorf("both led with token %s", tokens[0])
	}
}

// One import and one URL say on which coordinator.
func TestReadmeProgramElsewhere(t *testing.T) {
	for scheme, url := range map[string]func(t *testing.T) string{
		"zookeeper": func(t *testing.T) string { return "zookeeper://" + coordtest.SharedZooKeeper(t).Addrs()[0] + "/readme" },
		"etcd":      func(t *testing.T) string { return "etcd://" + coordtest.NewEtcd(t, nil).Addrs()[0] + "/readme" },
		"consul":    func(t *testing.T) string { return "consul://" + coordtest.NewConsul(t, nil).Addrs()[0] + "/readme" },
	} {
		t.Run(scheme, func(t *testing.T) {
			p := start(t, readmeProgram(t, module+"/local", module+"/"+scheme, `"local:"`, fmt.Sprintf("%q", url(t))))
			p.leads(t)
			p.stop(t, syscall.SIGTERM)
		})
	}
}

// What does not pass by itself shows in the exit code, and what the work says at its end too.
func TestReadmeProgramFails(t *testing.T) {
	const wait, end, failed = "<-ctx.Done()", "return ctx.Err()", `return errors.New("no paper")`
	for name, c := range map[string]struct {
		url      string
		replaced []string
		leads    bool // and is told to stop then
		says     string
	}{
		"the work":             {url: "local:" + t.TempDir(), replaced: []string{wait, "", end, failed}, says: "no paper"},
		"the work, at its end": {url: "local:" + t.TempDir(), replaced: []string{end, failed}, leads: true, says: "no paper"},
		"the coordinator":      {url: "local:/dev/null", says: "/dev/null"},
		"the URL":              {url: "", says: "it is empty; say which coordinator"},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, readmeProgram(t, append(c.replaced, `"local:"`, fmt.Sprintf("%q", c.url))...))
			if c.leads {
				p.leads(t)
				if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
			}
			_, _ = io.Copy(io.Discard, p.out)
			err := p.cmd.Wait()
			if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(p.said.String(), c.says) {
				t.Errorf("it ended with %v and printed\n%s", err, &p.said)
			}
		})
	}
}

// A process is the program of the README, which runs.
type process struct {
	cmd  *exec.Cmd
	out  *bufio.Reader
	said bytes.Buffer
}

func start(t *testing.T, program string) *process {
	t.Helper()
	p := &process{cmd: exec.CommandContext(t.Context(), program)}
	p.cmd.Stderr = &p.said
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	return p
}

// leads waits until the process says that it leads, and returns its token.
func (p *process) leads(t *testing.T) string {
	t.Helper()
	line, err := p.out.ReadString('\n')
	token := regexp.MustCompile(`^leading with token (\d+)\n$`).FindStringSubmatch(line)
	if token == nil {
		t.Fatalf("it printed %q, %v\n%s", line, err, &p.said)
	}
	return token[1]
}

// stop ends the process as a terminal or a service manager does. That is no failure.
func (p *process) stop(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(p.out)
	if err := p.cmd.Wait(); err != nil || len(rest) > 0 || p.said.Len() > 0 {
		t.Errorf("told to stop, it ended with %v, and printed %q\n%s", err, rest, &p.said)
	}
}

// readmeProgram builds the program of the README in a module that has nothing else, with each first of two texts
// replaced by the second.
func readmeProgram(t *testing.T, replaced ...string) string {
	t.Helper()
	blocks := regexp.MustCompile("(?s)```go\n(package main\n.*?)```").FindAllStringSubmatch(read(t, "README.md"), -1)
	if len(blocks) != 1 {
		t.Fatalf("the README has %d whole programs, want 1", len(blocks))
	}
	text := blocks[0][1]
	for i := 0; i < len(replaced); i += 2 {
		if strings.Count(text, replaced[i]) != 1 {
			t.Fatalf("the program of the README has %q %d times, want 1", replaced[i], strings.Count(text, replaced[i]))
		}
		text = strings.Replace(text, replaced[i], replaced[i+1], 1)
	}
	dir := outside(t, "example.com/reports", map[string]string{"main.go": text})
	program := filepath.Join(dir, "reports")
	build := exec.CommandContext(t.Context(), "go", "build", "-mod=mod", "-o", program, ".")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
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
