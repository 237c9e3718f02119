package ui

import (
	"net"
	"os"
	"time"
)

// A Unit is the unit of systemd that this process is the main process of, if that has Type=notify. It is told how the process is, as
// sd_notify(3) says. The zero Unit, of a process that no unit waits for, tells nobody.
type Unit struct{ to net.Conn }

// OpenUnit returns the unit of this process. Whatever this process starts speaks for no unit.
func OpenUnit() Unit {
	const variable = "NOTIFY_SOCKET"
	at := os.Getenv(variable)
	if at == "" {
		return Unit{}
	}
	os.Unsetenv(variable)
	to, err := net.Dial("unixgram", at) // with "@" in front, Go takes it for an abstract address, as systemd does
	if err != nil {
		return Unit{}
	}
	return Unit{to}
}

// Tell tells the unit states such as READY=1, with newlines between. What is not taken within a second is lost: nothing here
// waits for systemd.
func (u Unit) Tell(states string) {
	if u.to == nil {
		return
	}
	_ = u.to.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = u.to.Write([]byte(states))
}

// Close ends what OpenUnit has opened.
func (u Unit) Close() {
	if u.to != nil {
		u.to.Close()
	}
}
