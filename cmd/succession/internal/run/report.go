package run

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/succession-dev/succession/cmd/succession/internal/ui"
)

// logForm is the value of --log.
type logForm string

const (
	logAuto logForm = "" // text at a terminal, JSON elsewhere
	logText logForm = "text"
	logJSON logForm = "json"
	logOff  logForm = "off"
)

func (f *logForm) String() string { return string(*f) }
func (f *logForm) Type() string   { return "text|json|off" }

func (f *logForm) Set(s string) error {
	switch logForm(s) {
	case logText, logJSON, logOff:
		*f = logForm(s)
		return nil
	}
	return fmt.Errorf("use text, json or off")
}

// A message is one transition, in the form for people and in the form for
// programs.
type message struct {
	level slog.Level
	event string // "" if the text is for systemd alone
	text  string
	attrs []slog.Attr
	// name, where it is not nil, returns what belongs in the place of the %s in text. It
	// may block.
	name func() string
}

// A reporter writes messages in order, from a goroutine of its own: standard error may
// block, and the stop of a command does not wait for it. The unit of systemd has the newest as its status, which "systemctl
// status" shows.
type reporter struct {
	write func(message)
	unit  ui.Unit

	mu      sync.Mutex
	queue   []message
	more    *sync.Cond
	closed  bool
	drained chan struct{}
}

// newReporter starts a reporter for the election; [reporter.close] stops it.
func newReporter(w io.Writer, form logForm, election, id string) *reporter {
	if form == logAuto {
		form = logJSON
		if ui.IsTerminal(w) {
			form = logText
		}
	}
	r := &reporter{drained: make(chan struct{}), unit: ui.OpenUnit()}
	r.more = sync.NewCond(&r.mu)
	switch form {
	case logOff:
		r.write = func(message) {}
	case logText:
		r.write = func(m message) { fmt.Fprintln(w, "succession: "+ui.OneLine(m.text)) }
	default:
		r.write = jsonWriter(w, election, id)
	}
	go r.drain()
	return r
}

// jsonWriter returns a func that writes messages as JSON, with the event in the place of
// slog's msg.
func jsonWriter(w io.Writer, election, id string) func(message) {
	logger := slog.New(slog.NewJSONHandler(ui.VisibleLines(w), &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if a.Key == slog.MessageKey && len(groups) == 0 {
				a.Key = "event"
			}
			return a
		},
	})).With("election", election, "id", id)
	return func(m message) { logger.LogAttrs(context.Background(), m.level, m.event, m.attrs...) }
}

func (r *reporter) say(m message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append(r.queue, m)
	r.more.Signal()
}

func (r *reporter) info(event, text string, attrs ...slog.Attr) {
	r.say(message{slog.LevelInfo, event, text, attrs, nil})
}

func (r *reporter) warn(event, text string, attrs ...slog.Attr) {
	r.say(message{slog.LevelWarn, event, text, attrs, nil})
}

// tell tells the unit a state, such as READY=1, and nobody else.
func (r *reporter) tell(state string) { r.say(message{text: state}) }

// close writes what is left. What nobody has taken within a second is lost.
func (r *reporter) close() {
	r.mu.Lock()
	r.closed = true
	r.more.Signal()
	r.mu.Unlock()
	select {
	case <-r.drained:
	case <-time.After(time.Second):
	}
	r.unit.Close()
}

func (r *reporter) drain() {
	defer close(r.drained)
	writeInBackground()
	for {
		r.mu.Lock()
		for len(r.queue) == 0 && !r.closed {
			r.more.Wait()
		}
		queue := r.queue
		r.queue = nil
		r.mu.Unlock()
		if len(queue) == 0 {
			return
		}
		for _, m := range queue {
			if m.name != nil {
				name := m.name()
				m.text = fmt.Sprintf(m.text, name)
				m.attrs = append(m.attrs, slog.String("behind", name))
			}
			if m.event == "" {
				r.unit.Tell(m.text)
				continue
			}
			r.unit.Tell("STATUS=" + ui.OneLine(m.text))
			r.write(m)
		}
	}
}
