//go:build linux

package local_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/local"
)

// The test binary runs itself as the processes that are killed: roleVar says what
// to play, dirVar in which folder.
const (
	roleVar = "SUCCESSION_LOCAL_ROLE"
	dirVar  = "SUCCESSION_LOCAL_DIR"
)

// play is a process of the given role, which says on standard output what it does.
// It ends when its standard input does, so that it never outlives the test.
func play(role string) int {
	if role == "open" {
		return opens(filepath.SplitList(os.Getenv(dirVar)))
	}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	err := func() error {
		b, err := local.New(os.Getenv(dirVar), nil)
		if err != nil {
			return err
		}
		s, err := b.Session(context.Background())
		if err != nil {
			return err
		}
		switch role {
		case "stand":
			return stand(s)
		case "churn":
			return churn(s)
		case "starved":
			return starved(s)
		case "umask":
			return umask(s)
		case "covered":
			return covered(s)
		case "removed":
			return removed(b)
		case "read-only":
			return readOnly(b)
		}
		return fmt.Errorf("unknown role %q", role)
	}()
	fmt.Println("error", err)
	return 1
}

// opens says the number of the error of opening the first path, and of opening each other one, to read and to write; 0 is none.
func opens(paths []string) int {
	errno := func(path string, flag int) int {
		fd, err := unix.Open(path, flag|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return int(err.(unix.Errno))
		}
		unix.Close(fd)
		return 0
	}
	said := fmt.Sprint("opens ", errno(paths[0], unix.O_RDONLY))
	for _, path := range paths[1:] {
		said += fmt.Sprint(" ", errno(path, unix.O_RDONLY), " ", errno(path, unix.O_WRONLY))
	}
	fmt.Println(said)
	return 0
}

// stand joins, waits in line, and says when it leads.
func stand(s backend.Session) error {
	ctx := context.Background()
	m, err := s.Join(ctx, "e", strconv.Itoa(os.Getpid()), "")
	if err != nil {
		return err
	}
	fmt.Println("joined", m.Position)
	for {
		p, err := s.Ahead(ctx, m.Member)
		if err != nil {
			return err
		}
		if p.First {
			fmt.Println("leads", monotonic(), p.Token)
			select {}
		}
		if err := s.Gone(ctx, p.Ahead); err != nil {
			return err
		}
	}
}

// churn joins, leads when it can, writes and leaves, as fast as it can.
func churn(s backend.Session) error {
	ctx := context.Background()
	led, err := os.OpenFile(filepath.Join(os.Getenv(dirVar), "@led"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	last := uint64(0)
	for {
		m, err := s.Join(ctx, "e", strconv.Itoa(os.Getpid()), "")
		if err != nil {
			return err
		}
		if m.Position <= last {
			return fmt.Errorf("position %d after %d", m.Position, last)
		}
		last = m.Position
		fmt.Println("position", m.Position)
		p, err := s.Ahead(ctx, m.Member)
		if err != nil {
			return err
		}
		if !p.First && rand.N(2) == 0 {
			wait, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			err = s.Gone(wait, p.Ahead)
			cancel()
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				return err
			}
			if p, err = s.Ahead(ctx, m.Member); err != nil {
				return err
			}
		}
		if p.First {
			if err := lead(led, p.Token); err != nil {
				return err
			}
		}
		v, err := s.Put(ctx, "r", []byte(m.Value), &backend.If{Member: m.Member})
		if err != nil {
			return err
		}
		if uint64(v) <= last {
			return fmt.Errorf("version %d after position %d", v, last)
		}
		last = uint64(v)
		fmt.Println("position", v)
		if err := s.Leave(ctx, m.Member); err != nil {
			return err
		}
	}
}

// lead fails if somebody else leads, or has led with a larger token. When the next one
// leads, the lock on led of one who was killed is free: the kernel releases the locks of a process (F_SETLK) as it closes its
// descriptors, but those of an open file (flock, which a FIFO has) only when all are closed, the last one first.
func lead(led *os.File, token uint64) error {
	lk := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(led.Fd(), unix.F_SETLK, &lk); err != nil {
		return fmt.Errorf("two lead: %w", err)
	}
	defer func() {
		lk.Type = unix.F_UNLCK
		unix.FcntlFlock(led.Fd(), unix.F_SETLK, &lk)
	}()
	var old [20]byte
	if n, err := led.ReadAt(old[:], 0); n == len(old) {
		before, err := strconv.ParseUint(string(old[:]), 10, 64)
		if err != nil || before >= token {
			return fmt.Errorf("token %d after %q", token, old)
		}
	} else if err != io.EOF {
		return err
	}
	_, err := led.WriteAt(fmt.Appendf(nil, "%020d", token), 0)
	return err
}

// monotonic is the time on a clock that all processes share.
func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

// A process is one that a test started.
type process struct {
	cmd   *exec.Cmd
	lines chan string // what it says; closed at its end
}

func start(t *testing.T, role, dir string) *process {
	t.Helper()
	return startAs(t, os.Geteuid(), role, dir)
}

// startAs is start as a user, which root may.
func startAs(t *testing.T, uid int, role, dir string) *process {
	t.Helper()
	var attr *syscall.SysProcAttr
	if uid != os.Geteuid() {
		attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	return startWith(t, attr, role, dir)
}

// startMounting is start for a role that mounts, where nobody else sees that.
func startMounting(t *testing.T, role, dir string) *process {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may mount")
	}
	return startWith(t, &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}, role, dir)
}

func startWith(t *testing.T, attr *syscall.SysProcAttr, role, dir string) *process {
	t.Helper()
	p := &process{cmd: exec.Command("/proc/self/exe"), lines: make(chan string, 1<<16)}
	p.cmd.Env = append(os.Environ(), roleVar+"="+role, dirVar+"="+dir)
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = attr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(p.lines)
		for sc := bufio.NewScanner(out); sc.Scan(); {
			p.lines <- sc.Text()
		}
	}()
	t.Cleanup(func() {
		in.Close()
		p.kill()
		<-read
		p.cmd.Wait()
	})
	return p
}

func (p *process) kill() { p.cmd.Process.Signal(syscall.SIGKILL) }

// say returns the numbers of the next line, which must begin with word.
func (p *process) say(t *testing.T, word string) []uint64 {
	t.Helper()
	select {
	case line, ok := <-p.lines:
		f := strings.Fields(line)
		if !ok || f[0] != word {
			t.Fatalf("process %d said %q, want %q", p.cmd.Process.Pid, line, word)
		}
		var n []uint64
		for _, digits := range f[1:] {
			v, err := strconv.ParseUint(digits, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			n = append(n, v)
		}
		return n
	case <-time.After(30 * time.Second):
		t.Fatalf("process %d does not say %q", p.cmd.Process.Pid, word)
		return nil
	}
}

// silent fails when the process says anything. It can miss a mistake, but never
// report one that is none.
func (p *process) silent(t *testing.T, when string) {
	t.Helper()
	select {
	case line := <-p.lines:
		t.Fatalf("%s: process %d says %q", when, p.cmd.Process.Pid, line)
	case <-time.After(50 * time.Millisecond):
	}
}
