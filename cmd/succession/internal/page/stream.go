package page

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/succession-dev/succession/backend"
)

const (
	// pace is the time between two events of a stream, at least.
	pace = 250 * time.Millisecond
	// alive is how often a stream says something, at least: a page that hears nothing for longer
	// says that it is out of date.
	alive = 10 * time.Second
	// writeBound is how long a page may take to read an answer, or an event of a stream.
	writeBound = 30 * time.Second
)

// events is the stream of a page: events "list" with what has changed in the list, and "detail" with
// what the page shows, if the parameter show has the line of a row. An event "hint" says why that is not shown.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	line := r.URL.Query().Get("show")
	if line != "" {
		if err := backend.CheckName(line); err != nil {
			refuse(w, http.StatusBadRequest, err)
			return
		}
	}
	if !s.streams.take() {
		refuse(w, http.StatusServiceUnavailable, errManyStreams)
		return
	}
	defer s.streams.give()
	w.Header().Set("Content-Type", "text/event-stream")
	defer s.w.looks.need()()
	var o *observer
	var hinted error
	out := stream{http.NewResponseController(w), w}
	var listed, detailed uint64
	var told string
	for ctx := r.Context(); ; {
		changed := s.w.bell.next()
		l, seq := s.w.list(listed)
		// What is not about a row has no number.
		if state := fmt.Sprint(l.Ready, l.Error); len(l.Rows) > 0 || l.All || state != told {
			told, listed = state, seq
			if out.send("list", l) != nil {
				return
			}
		}
		if o == nil && line != "" {
			var release func()
			var err error
			if o, release, err = s.w.observe(line); o != nil {
				defer release()
			} else if err != nil && err != hinted {
				if hinted = err; out.send("hint", err.Error()) != nil {
					return
				}
			}
		}
		if o != nil {
			var d json.RawMessage
			if d, detailed = o.newest(detailed); d != nil && out.send("detail", d) != nil {
				return
			}
		}
		if s.pause(ctx, nil, pace) != nil {
			return
		}
		if s.pause(ctx, changed, alive) != nil {
			return
		}
		if out.send("alive", time.Now().UnixMilli()) != nil {
			return
		}
	}
}

// pause blocks for d, or until changed is closed. It fails if ctx ends, or the server closes.
func (s *Server) pause(ctx context.Context, changed <-chan struct{}, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.w.tasks.ctx.Done():
		return s.w.tasks.ctx.Err()
	}
	return nil
}

// A stream is one of server-sent events.
type stream struct {
	control *http.ResponseController
	w       http.ResponseWriter
}

func (s stream) send(event string, v any) error {
	text, err := json.Marshal(v) // on one line, with < and > escaped
	if err != nil {
		return err
	}
	if err := s.control.SetWriteDeadline(time.Now().Add(writeBound)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", event, text); err != nil {
		return err
	}
	return s.control.Flush()
}
