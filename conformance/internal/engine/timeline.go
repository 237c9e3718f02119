package engine

import (
	"fmt"
	"sync"
	"time"
)

// timelineLength is how many events a report shows. It shows the last ones, because they tell
// why a rule failed.
const timelineLength = 80

// A timeline has what the clients of a trial did, in one order.
type timeline struct {
	mu      sync.Mutex
	events  []moment
	dropped int
	open    map[*moment]struct{} // calls that have not returned
}

type moment struct {
	at    time.Time // when it was first noted
	who   string
	what  string
	took  time.Duration
	times int // how often the client has done it in a row
}

func (m *moment) line(began time.Time) string {
	s := fmt.Sprintf("%+9.3fs %-5s %s", m.at.Sub(began).Seconds(), m.who, m.what)
	if m.took > time.Millisecond {
		s += fmt.Sprintf(" (after %v)", m.took.Round(time.Millisecond))
	}
	if m.times > 1 {
		s += fmt.Sprintf(" (%d times)", m.times)
	}
	return s
}

func (l *timeline) add(who, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keep(moment{at: time.Now(), who: who, what: fmt.Sprintf(format, args...)})
}

// keep appends m. If the client's last event was the same, as in a poll, keep only counts it.
func (l *timeline) keep(m moment) {
	for i := len(l.events) - 1; i >= 0; i-- {
		if last := &l.events[i]; last.who == m.who {
			if last.what == m.what {
				last.times++
				return
			}
			break
		}
	}
	if len(l.events) == 2*timelineLength {
		l.dropped += timelineLength
		l.events = append(l.events[:0], l.events[timelineLength:]...)
	}
	m.times = 1
	l.events = append(l.events, m)
}

// begin notes that a call begins. The func that it returns notes the result. If the result is
// nil, the call does not appear in the timeline.
func (l *timeline) begin(who, format string, args ...any) func(result any) {
	call := &moment{at: time.Now(), who: who, what: fmt.Sprintf(format, args...)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = make(map[*moment]struct{})
	}
	l.open[call] = struct{}{}
	return func(result any) {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, call)
		if result != nil {
			l.keep(moment{
				at:   time.Now(),
				who:  who,
				what: fmt.Sprintf("%s -> %v", call.what, result),
				took: time.Since(call.at),
			})
		}
	}
}

// lines returns the last events, followed by the calls that have not returned yet.
func (l *timeline) lines(began time.Time) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	events, dropped := l.events, l.dropped
	if n := len(events) - timelineLength; n > 0 {
		events, dropped = events[n:], dropped+n
	}
	var out []string
	if dropped > 0 {
		out = append(out, fmt.Sprintf("(%d earlier events)", dropped))
	}
	for _, m := range events {
		out = append(out, m.line(began))
	}
	for m := range l.open {
		out = append(out, m.line(began)+" has not returned")
	}
	return out
}
