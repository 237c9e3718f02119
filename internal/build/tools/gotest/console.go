package main

import (
	"bytes"
	"io"
	"os"
	"sync"
	"time"
)

// A console prints what several goroutines have to say, whole lines at a time. On a terminal its last line
// says how far the run is; elsewhere that is printed when nothing else was printed for a while.
type console struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	shown    string    // on a terminal, its last line
	last     time.Time // when something was printed
}

// quiet is the time after which that line is printed where there is no terminal.
const quiet = 30 * time.Second

func newConsole(w io.Writer) *console {
	c := &console{w: w, last: time.Now()}
	if f, ok := w.(*os.File); ok && os.Getenv("TERM") != "dumb" {
		info, err := f.Stat()
		c.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return c
}

// Write prints whole lines above the status.
func (c *console) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = time.Now()
	c.hide()
	return c.w.Write(b)
}

func (c *console) hide() {
	if c.shown != "" {
		io.WriteString(c.w, "\r\x1b[K")
		c.shown = ""
	}
}

// show prints the status, if it is time.
func (c *console) show(status string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	status = status[:min(len(status), 79)] // a longer line cannot be replaced
	switch {
	case c.terminal && status != c.shown:
		c.hide()
		io.WriteString(c.w, status)
		c.shown = status
	case !c.terminal && now.Sub(c.last) >= quiet:
		io.WriteString(c.w, "      ["+status+"]\n")
		c.last = now
	}
}

// keepStatus shows each second what status returns, until stop is called.
func (c *console) keepStatus(status func() string) (stop func()) {
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		second := time.NewTicker(time.Second)
		defer second.Stop()
		for {
			select {
			case now := <-second.C:
				c.show(status(), now)
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-stopped
		c.mu.Lock()
		defer c.mu.Unlock()
		c.hide()
	}
}

// lines returns a writer that prints the lines of one process, each behind a prefix. It leaves out empty lines.
// Close prints a last line without an end.
func (c *console) lines(prefix string) *lines { return &lines{out: c, prefix: prefix} }

type lines struct {
	out    *console
	prefix string
	part   []byte
}

func (l *lines) Write(b []byte) (int, error) {
	l.part = append(l.part, b...)
	if end := bytes.LastIndexByte(l.part, '\n') + 1; end > 0 {
		var whole []byte
		for line := range bytes.Lines(l.part[:end]) {
			if len(line) > 1 {
				whole = append(append(whole, l.prefix...), line...)
			}
		}
		l.part = append([]byte(nil), l.part[end:]...)
		if _, err := l.out.Write(whole); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

func (l *lines) Close() error {
	if len(l.part) == 0 {
		return nil
	}
	_, err := l.Write([]byte("\n"))
	return err
}
