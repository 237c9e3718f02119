package ui

import (
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// A Unit is the unit of systemd that this process is the main process of, if that has Type=notify. It is told how the process is, as
// sd_notify(3) says. The zero Unit, of a process that no unit waits for, tells nobody.
type Unit struct{ post *post }

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
	p := &post{to: to, more: make(chan struct{}, 1), sent: make(chan struct{})}
	go p.send()
	return Unit{p}
}

// Tell tells the unit states such as READY=1, with newlines between. It does not block: systemd may be busy for seconds, as while
// it loads its units again, and must hear READY=1 then nevertheless. A status that has not been taken gives way to a newer one.
func (u Unit) Tell(states string) {
	if u.post != nil {
		u.post.add(states)
	}
}

// Close ends what OpenUnit has opened. What is not taken within a second is lost, and what is told later.
func (u Unit) Close() {
	if u.post != nil {
		u.post.close()
	}
}

// A post sends what a unit is told, in order, from a goroutine of its own.
type post struct {
	to   net.Conn
	more chan struct{} // has one when there may be something to send, and is closed at the end
	sent chan struct{} // closed when all is sent

	mu      sync.Mutex
	waiting []string
	closed  bool
}

func (p *post) add(states string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	if n := len(p.waiting); n > 0 && isStatus(states) && isStatus(p.waiting[n-1]) {
		p.waiting = p.waiting[:n-1]
	}
	p.waiting = append(p.waiting, states)
	select {
	case p.more <- struct{}{}:
	default:
	}
}

// isStatus reports whether states are the status alone.
func isStatus(states string) bool {
	return strings.HasPrefix(states, "STATUS=") && !strings.Contains(states, "\n")
}

func (p *post) send() {
	defer close(p.sent)
	for range p.more {
		for {
			p.mu.Lock()
			if len(p.waiting) == 0 {
				p.mu.Unlock()
				break
			}
			next := p.waiting[0]
			p.waiting = p.waiting[1:]
			p.mu.Unlock()
			if _, err := p.to.Write([]byte(next)); err != nil {
				return // nobody listens any more
			}
		}
	}
}

func (p *post) close() {
	_ = p.to.SetWriteDeadline(time.Now().Add(time.Second))
	p.mu.Lock()
	p.closed = true
	close(p.more)
	p.mu.Unlock()
	<-p.sent
	p.to.Close()
}
