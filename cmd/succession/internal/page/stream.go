package page

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
)

const (
	// pace is the time between two events of a stream, at least.
	pace = 250 * time.Millisecond
	// alive is how often a stream says something, at least: a page that hears nothing for some times as long
	// says that it is out of date.
	alive = time.Second
	// writeBound is how long a page may take to read an answer, or an event of a stream.
	writeBound = 30 * time.Second
)

// events is the stream of a page: events "list" with what has changed in the list, and "detail" with
// what the page shows, if the parameter show has the line of a row. An event "hint" says why that is not shown.
func (p *page) events(w http.ResponseWriter, r *http.Request) {
	line := r.URL.Query().Get("show")
	if line != "" {
		if err := backend.CheckName(line); err != nil {
			refuse(w, http.StatusBadRequest, err)
			return
		}
	}
	if !p.streams.take() {
		refuse(w, http.StatusServiceUnavailable, errManyStreams)
		return
	}
	defer p.streams.give()
	w.Header().Set("Content-Type", "text/event-stream")
	defer p.w.looks.need()()
	var o *observer
	var hinted error
	out := stream{http.NewResponseController(w), w}
	var listed listedAt
	var detailed uint64
	for ctx := r.Context(); ; {
		changed := p.w.bell.next()
		var news []byte
		if news, listed = p.w.news(listed); news != nil && out.send(news) != nil {
			return
		}
		if o == nil && line != "" {
			var release func()
			var err error
			if o, release, err = p.w.observe(line); o != nil {
				defer release()
			} else if err != nil && err != hinted {
				if hinted = err; out.send(event("hint", err.Error())) != nil {
					return
				}
			}
		}
		if o != nil {
			if news, detailed = o.newest(detailed); news != nil && out.send(news) != nil {
				return
			}
		}
		if p.pause(ctx, nil, pace) != nil {
			return
		}
		if p.pause(ctx, changed, alive) != nil {
			return
		}
		if out.send(event("alive", time.Now().UnixMilli())) != nil {
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
	case <-s.life.Done():
		return s.life.Err()
	}
	return nil
}

// A stream is one of server-sent events.
type stream struct {
	control *http.ResponseController
	w       http.ResponseWriter
}

func (s stream) send(event []byte) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(writeBound)); err != nil {
		return err
	}
	if _, err := s.w.Write(event); err != nil {
		return err
	}
	return s.control.Flush()
}

// event returns an event as it is sent. What is long is made once, and all streams send the same bytes: one for each
// would be gigabytes, if somebody has filled a line and many pages do not read. Its texts are such that what others have written can
// be seen.
func event(name string, v any) []byte {
	text, bug := json.Marshal(v) // on one line, with < and > escaped
	if bug != nil {
		panic(bug) // text and numbers always marshal
	}
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, visible(text))
}

// visible returns JSON in which each text is what [ui.Visible] makes of it: an id with a character that changes the order of letters
// looks like another one.
func visible(text []byte) []byte {
	out := make([]byte, 0, len(text))
	escape := func(r rune) {
		for _, unit := range utf16.Encode([]rune{r}) {
			out = fmt.Appendf(out, `\\u%04x`, unit)
		}
	}
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if r == '\\' { // an escape: of one character, or of \u and four digits
			if n = 2; text[1] == 'u' {
				n = 6
			}
			var said string
			if bug := json.Unmarshal(fmt.Appendf(nil, `"%s"`, text[:n]), &said); bug != nil {
				panic(bug) // it was marshalled
			}
			r, _ = utf8.DecodeRuneInString(said)
		}
		if ui.Hidden(r) {
			escape(r)
		} else {
			out = append(out, text[:n]...)
		}
		text = text[n:]
	}
	return out
}
