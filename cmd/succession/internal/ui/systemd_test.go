//go:build linux

package ui

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/calm"
)

// systemd may take nothing for a while. What it is told meanwhile does not hold up the process, and READY=1 is not lost.
func TestUnitIsBusy(t *testing.T) {
	at := &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"}
	systemd, err := net.ListenUnixgram("unixgram", at)
	if err != nil {
		t.Fatal(err)
	}
	defer systemd.Close()
	others, err := net.DialUnix("unixgram", nil, at)
	if err != nil {
		t.Fatal(err)
	}
	defer others.Close()
	for err == nil { // until there is room for no more
		others.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		_, err = others.Write([]byte("x"))
	}
	t.Setenv("NOTIFY_SOCKET", at.Name)
	u := OpenUnit()
	watch := calm.Start(t)
	for range 3 {
		u.Tell("STATUS=waiting")
	}
	u.Tell("READY=1")
	u.Tell("STATUS=waits on")
	u.Tell("STATUS=leads")
	watch.Within(time.Second, "to tell systemd")
	var told []string
	systemd.SetReadDeadline(time.Now().Add(time.Minute))
	for b := make([]byte, 1000); len(told) == 0 || told[len(told)-1] != "STATUS=leads"; {
		n, err := systemd.Read(b)
		if err != nil {
			t.Fatalf("systemd was told %q: %v", told, err)
		}
		if s := string(b[:n]); s != "x" {
			told = append(told, s)
		}
	}
	if all := strings.Join(told, " "); !strings.HasSuffix(all, "READY=1 STATUS=leads") {
		t.Errorf("systemd was told %q", told)
	}
	u.Close()
	u.Tell("READY=1") // of a command that nobody waits for any more
}

// A socket that cannot be, or whose listener goes, harms nobody.
func TestUnitIsNot(t *testing.T) {
	for _, at := range []string{filepath.Join(t.TempDir(), "not"), "@" + t.Name(), "@", "/" + strings.Repeat("x", 200), "vsock:2:1234", "\n"} {
		t.Setenv("NOTIFY_SOCKET", at)
		u := OpenUnit()
		u.Tell("READY=1")
		u.Close()
	}
	systemd, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: "@" + t.Name(), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("NOTIFY_SOCKET", "@"+t.Name())
	u := OpenUnit()
	u.Tell("READY=1")
	b := make([]byte, 100)
	if n, err := systemd.Read(b); err != nil || string(b[:n]) != "READY=1" {
		t.Errorf("at an abstract address it is told %q, %v", b[:n], err)
	}
	systemd.Close()
	for range 10 {
		u.Tell("READY=1")
	}
	u.Close()
}
