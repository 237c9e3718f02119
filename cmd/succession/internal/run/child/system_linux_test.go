package child

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A process whose id another one has by now is not signalled, with descriptors of processes and without.
func TestSignalMeansOneProcess(t *testing.T) {
	open := openProcess
	defer func() { openProcess = open }()
	for name, f := range map[string]func(int, int) (int, error){
		"descriptors":    open,
		"no descriptors": func(int, int) (int, error) { return -1, unix.ENOSYS },
	} {
		t.Run(name, func(t *testing.T) {
			openProcess = f
			cmd := exec.Command("sleep", "60")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			pid := cmd.Process.Pid
			born, err := startTime(pid)
			if err != nil {
				t.Fatal(err)
			}
			p := process{pid, born}
			if err := (process{pid, p.born - 1}).signal(syscall.SIGKILL); !errors.Is(err, unix.ESRCH) {
				t.Errorf("one that was born before: %v; want ESRCH", err)
			}
			if err := p.signal(0); err != nil {
				t.Errorf("it was killed in the place of another: %v", err)
			}
			if err := p.signal(syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Errorf("it ended with %v", err)
			}
			if err := p.signal(syscall.SIGKILL); !errors.Is(err, unix.ESRCH) {
				t.Errorf("one that has ended: %v; want ESRCH", err)
			}
		})
	}
}

// A process chooses its name, and so what stands in its line of /proc. It cannot choose its parent.
func FuzzStat(f *testing.F) {
	for _, name := range []string{"sh", ") S 1 1", "a b", "\n", "((", ") Z 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 (x"} {
		f.Add(name, 42, uint64(7))
	}
	f.Fuzz(func(t *testing.T, name string, parent int, born uint64) {
		line := fmt.Sprintf("99 (%s) S %d 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 %d 1 2 3", name, parent, born)
		if p, b, ok := parseStat([]byte(line)); !ok || p != parent || b != born {
			t.Errorf("%q is read as %d, %d, %t", line, p, b, ok)
		}
		parseStat([]byte(name)) // whatever it is
	})
}
