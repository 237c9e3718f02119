package coordtest

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// No two programs that run at the same time have a port in common. The test is also what
// the other program runs: it prints its ports.
func TestPortsOfAnotherProgram(t *testing.T) {
	const other = "SUCCESSION_TEST_PORTS"
	mine, err := freePorts(300) // more than a block
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv(other) != "" {
		for _, p := range mine {
			os.Stdout.WriteString(strconv.Itoa(p) + "\n")
		}
		return
	}
	seen := make(map[int]bool)
	for _, p := range mine {
		if seen[p] {
			t.Fatalf("port %d was handed out twice", p)
		}
		seen[p] = true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestPortsOfAnotherProgram$")
	cmd.Env = append(os.Environ(), other+"=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(out)) {
		p, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			continue // what package testing says
		}
		n++
		if slices.Contains(mine, p) {
			t.Errorf("another program was given port %d, too", p)
		}
	}
	if n != len(mine) {
		t.Errorf("the other program has %d ports, want %d", n, len(mine))
	}
}

// Nobody listens at the address of Refused, and nobody else can.
func TestRefused(t *testing.T) {
	addr := Refused(t)
	if c, err := net.Dial("tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a connection: %v, %v", c, err)
	}
	if l, err := net.Listen("tcp", addr); err == nil {
		l.Close()
		t.Error("somebody else listens there")
	}
}
