package page

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
)

// CheckName returns an error if a coordinator cannot be called that: its page is below a path of that name.
func CheckName(name string) error {
	if strings.Contains(name, "/") || backend.CheckName(name) != nil {
		return fmt.Errorf("%w name %q of a coordinator: use letters, digits, '.', '_' and '-'", backend.ErrInvalid, name)
	}
	if slices.Contains([]string{"events", "files", "healthz"}, name) {
		return fmt.Errorf("%w name %q of a coordinator: that is a path of the overview; use another one", backend.ErrInvalid, name)
	}
	return nil
}

// NewOverview is [New] for several coordinators. Each has a page at a path of its own, and an overview of them is at the root. Their
// names must differ, and be such that [CheckName] allows. Whoever may see or do something may do so on all pages.
func NewOverview(of []Coordinator, o Options) *Server {
	s := newServer(o)
	s.root = s.handler(s.overview, s.reports)
	for _, c := range of {
		s.add(c)
	}
	return s
}

// pageOf returns the page that a request is for, and the request as if that page began at "/"; nil if it is for what is at the root.
func (s *Server) pageOf(r *http.Request) (*page, *http.Request) {
	for _, p := range s.pages {
		if p.name == "" {
			break // it is at the root
		}
		if in, ok := below("/"+p.name, r); ok {
			return p, in
		}
	}
	return nil, nil
}

func (s *Server) overview(w http.ResponseWriter, r *http.Request) {
	if s.streams.full() {
		refuse(w, http.StatusServiceUnavailable, errManyStreams)
		return
	}
	s.render(w, http.StatusOK, "overview.html", struct{ User string }{visitorOf(r).user})
}

// A report is what the overview says of one coordinator. Times are in milliseconds since 1970.
type report struct {
	Name      string `json:"name"`
	URL       string `json:"url"`
	Elections int    `json:"elections"` // rows of its list, if that is ready
	Trouble   int    `json:"trouble"`   // how many of them are in trouble
	More      int    `json:"more"`      // how many lines are not looked at
	// Ready, Lost, Error and Since are as in the list. While the coordinator is not heard from, Error says why, if that is known.
	Ready bool   `json:"ready"`
	Lost  int64  `json:"lost,omitempty"`
	Error string `json:"error,omitempty"`
	Since int64  `json:"since,omitempty"`
}

func (p *page) report() report {
	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stale {
		w.refold()
	}
	r := report{Name: p.name, URL: p.url}
	if r.Ready, r.Lost = w.known(); r.Ready {
		r.Elections, r.Trouble, r.More = len(w.rows), w.trouble, w.more
	}
	err := w.err
	if r.Lost != 0 {
		_, err = w.pulse.lost()
	} else if err != nil {
		r.Since = w.since.UnixMilli()
	}
	if err != nil {
		r.Error = ui.Clip(ui.OneLine(err.Error()))
	}
	if r.Lost != 0 && w.why != "" {
		r.Error = ui.Clip(ui.OneLine(w.why))
	}
	return r
}

// reports is the stream of the overview: events "coordinators" with what it says of each.
func (s *Server) reports(w http.ResponseWriter, r *http.Request) {
	if !s.streams.take() {
		refuse(w, http.StatusServiceUnavailable, errManyStreams)
		return
	}
	defer s.streams.give()
	w.Header().Set("Content-Type", "text/event-stream")
	for _, p := range s.pages {
		defer p.w.looks.need()()
	}
	out := stream{http.NewResponseController(w), w}
	var told []byte
	for ctx := r.Context(); ; {
		changed := s.bell.next()
		all := make([]report, 0, len(s.pages))
		for _, p := range s.pages {
			all = append(all, p.report())
		}
		if now := event("coordinators", all); !bytes.Equal(now, told) {
			if out.send(now) != nil {
				return
			}
			told = now
		}
		if s.pause(ctx, nil, pace) != nil || s.pause(ctx, changed, alive) != nil {
			return
		}
		if out.send(event("alive", time.Now().UnixMilli())) != nil {
			return
		}
	}
}
