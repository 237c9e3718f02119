//go:build linux

package main

import (
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A unit is what systemd is for a unit with Type=notify: it hears what the process tells.
type unit struct {
	*testing.T
	conn *net.UnixConn
	file string
	told []string
}

func listenAsUnit(t *testing.T) *unit {
	t.Helper()
	file := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: file, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &unit{T: t, conn: conn, file: file}
}

// hears waits until that was told.
func (u *unit) hears(want string) {
	u.Helper()
	b := make([]byte, 1<<16)
	for u.conn.SetReadDeadline(time.Now().Add(patience)); !slices.Contains(u.told, want); {
		n, err := u.conn.Read(b)
		if err != nil {
			u.Fatalf("systemd is not told %q, but %q", want, u.told)
		}
		u.told = append(u.told, strings.Split(string(b[:n]), "\n")...)
	}
}

// A unit of systemd is ready when its process stands in line, and not before; its status is how it stands. What the process has started
// speaks for no unit.
func TestNotify(t *testing.T) {
	t.Parallel()
	url := localURL(t)
	begin := func(id string, args ...string) (*unit, *process) {
		u := listenAsUnit(t)
		cmd := command(append([]string{"--url", url, "run", "--id", id}, args...)...)
		cmd.Env = append(cmd.Environ(), "NOTIFY_SOCKET="+u.file)
		return u, startCommand(t, cmd)
	}
	first, leader := begin("web-1", "reports", "--", "sh", "-c", `echo "${NOTIFY_SOCKET-none}"; exec sleep 1000`)
	first.hears("READY=1")
	if said := <-leader.out; said != "none" {
		t.Errorf("what the process has started has NOTIFY_SOCKET=%s", said)
	}
	second, waiter := begin("web-2", "reports", "--", "sleep", "1000")
	second.hears("READY=1")
	second.hears(`STATUS=waiting for "reports" behind web-1`)
	leader.signal(syscall.SIGTERM)
	first.hears("STOPPING=1")
	leader.exits(143)
	token := waiter.event("elected").Token
	second.hears(`STATUS=elected leader of "reports", token ` + strconv.FormatUint(token, 10))
	waiter.signal(syscall.SIGTERM)
	second.hears("STOPPING=1")

	// Who does not reach the coordinator does not stand in line.
	third := listenAsUnit(t)
	cmd := command("--url", "etcd://127.0.0.1:1/app", "run", "--connect-timeout", "1s", "reports", "--", "true")
	cmd.Env = append(cmd.Environ(), "NOTIFY_SOCKET="+third.file)
	startCommand(t, cmd).exits(125)
	all, err := net.Dial("unixgram", third.file)
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	if _, err := all.Write([]byte("that was all")); err != nil {
		t.Fatal(err)
	}
	third.hears("that was all")
	if slices.Contains(third.told, "READY=1") {
		t.Errorf("the unit is ready whose process has not reached the coordinator: %q", third.told)
	}
}
