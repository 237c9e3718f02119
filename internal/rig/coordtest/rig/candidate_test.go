//go:build unix

package rig_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	_ "github.com/succession-dev/succession/memory"
)

// parentEnv makes the test binary start a candidate, stop it, say its process id, and
// wait to be killed.
const parentEnv = "RIG_PARENT"

func TestMain(m *testing.M) {
	rig.Candidate()
	if os.Getenv(parentEnv) != "" {
		if err := parent(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func parent() error {
	cmd, in, out, err := start()
	if err != nil {
		return err
	}
	defer in.Close()
	if err := leads(out); err != nil {
		return err
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	// The signal has been sent, and takes its effect later.
	if _, err := syscall.Wait4(cmd.Process.Pid, nil, syscall.WUNTRACED, nil); err != nil {
		return err
	}
	fmt.Println(cmd.Process.Pid)
	select {}
}

func start() (cmd *exec.Cmd, in io.WriteCloser, out *bufio.Reader, err error) {
	cmd = rig.Process("memory:rig")("e", "c")
	if in, err = cmd.StdinPipe(); err != nil {
		return nil, nil, nil, err
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, nil, err
	}
	return cmd, in, bufio.NewReader(pipe), cmd.Start()
}

// leads reads what the candidate notes until it has won.
func leads(out *bufio.Reader) error {
	for {
		line, err := out.ReadString('\n')
		if err != nil || strings.Contains(line, `"won"`) {
			return err
		}
	}
}

func TestCandidateEndsWithItsInput(t *testing.T) {
	cmd, in, out, err := start()
	if err != nil {
		t.Fatal(err)
	}
	if err := leads(out); err != nil {
		t.Fatal(err)
	}
	in.Close()
	rest, err := io.ReadAll(out)
	if err != nil || !strings.Contains(string(rest), `"resigned"`) {
		t.Errorf("the candidate has noted %s (error: %v), want that it has resigned", rest, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A test binary that is killed leaves no candidate behind, not even one that it has
// stopped, which cannot see the end of its input.
func TestStoppedCandidateEndsWithTheTestBinary(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), parentEnv+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	_, err = fmt.Fscan(out, &pid)
	cmd.Process.Kill()
	cmd.Wait() // says that it was killed
	if err != nil {
		t.Fatal("no candidate was started:", err)
	}
	end := time.Now().Add(10 * time.Second)
	for !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		if time.Now().After(end) {
			syscall.Kill(pid, syscall.SIGKILL)
			t.Fatalf("process %d still exists", pid)
		}
		time.Sleep(10 * time.Millisecond) // no event tells a stranger
	}
}
