package main

import (
	"bytes"
	"fmt"
	"testing"
	"time"
)

func TestConsole(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct {
		name     string
		terminal bool
		want     string
	}{
		{"terminal", true, "1 of 2\r\x1b[Kok\n2 of 2\r\x1b[K3 of 2"}, // each in place of the last
		{"file", false, "ok\n      [1 of 2]\n"},
	} {
		var out bytes.Buffer
		c := &console{w: &out, terminal: tt.terminal, last: now}
		c.show("1 of 2", now.Add(time.Second))
		c.show("1 of 2", now.Add(2*time.Second))
		fmt.Fprintln(c, "ok")
		if !tt.terminal {
			now = c.last.Add(quiet)
			c.show("1 of 2", now)
			c.show("1 of 2", now.Add(quiet/2))
		} else {
			c.show("2 of 2", now)
			c.show("3 of 2", now)
		}
		if got := out.String(); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestLines(t *testing.T) {
	var out bytes.Buffer
	l := (newConsole(&out)).lines("etcd: ")
	for _, part := range []string{"buil", "ding\n\nstill ", "building\nbuilt", ""} {
		fmt.Fprint(l, part)
	}
	l.Close()
	if got, want := out.String(), "etcd: building\netcd: still building\netcd: built\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
