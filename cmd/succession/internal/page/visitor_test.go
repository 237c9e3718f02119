package page_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/cmd/succession/internal/page"
)

// A row and a detail are what a page is told, as far as tests look at it.
type (
	row    struct{ Name, Line, Kind, Who, Token, State, Mood string }
	detail struct {
		Name, Kind, State, Error string
		NoPause                  bool
		Leader                   *struct{ ID, Value, Token, NotReady string }
		Paused                   *struct {
			By, Reason, Token string
			Front             int
		}
		Migration *struct {
			Phase, Next string
			Blocks      []string
		}
		Tables []struct {
			Title string
			Rows  [][]string
			More  int
			To    []string
			Note  string
		}
		Terms []struct {
			ID, Token, Why string
			From, To       int64
			Before, Late   bool
			Told           bool
		}
		Gaps   []struct{ Kind string }
		Untold string
	}
)

// A report is what the overview is told of a coordinator.
type report struct {
	Name, URL, Error   string
	Elections, Trouble int
	More               int
	Ready              bool
	Lost               int64
}

// A visitor has a page open, and knows what that would show.
type visitor struct {
	t      *testing.T
	events chan [2]string // name and data
	leave  context.CancelFunc
	rows   map[string]row // by line
	ready  bool
	err    string
	since  int64
	lost   int64
	more   int
	hint   string
	detail detail
	got    map[string]int // events, by name
	// What the overview shows, by the names of coordinators.
	reports map[string]report
}

// visit opens a page that shows the election; "" is none.
func visit(t *testing.T, s *page.Server, show string) *visitor {
	t.Helper()
	return visitAt(t, s, "/events?show="+show)
}

// visitAt opens the page that has its events at the path.
func visitAt(t *testing.T, s *page.Server, path string) *visitor {
	t.Helper()
	r := request(http.MethodGet, path, "")
	ctx, leave := context.WithCancel(r.Context())
	in, out := io.Pipe()
	v := &visitor{t: t, events: make(chan [2]string, 10000), leave: leave, rows: make(map[string]row), got: make(map[string]int)}
	go func() {
		s.ServeHTTP(&flushed{ResponseRecorder: httptest.NewRecorder(), to: out}, r.WithContext(ctx))
		out.Close()
	}()
	go func() {
		defer close(v.events)
		name := ""
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, 1<<22)
		for lines.Scan() {
			if e, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				name = e
			} else if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				v.events <- [2]string{name, data}
			}
		}
	}()
	t.Cleanup(v.goes)
	return v
}

func (v *visitor) goes() {
	v.leave()
	for range v.events {
	}
}

// flushed is a response that is read while it is written.
type flushed struct {
	*httptest.ResponseRecorder
	to io.Writer
}

func (f *flushed) Write(b []byte) (int, error)        { return f.to.Write(b) }
func (f *flushed) SetWriteDeadline(_ time.Time) error { return nil }

// sees waits until the page shows what ok wants.
func (v *visitor) sees(what string, ok func() bool) {
	v.t.Helper()
	for late := time.After(10 * time.Minute); !ok(); {
		select {
		case e, open := <-v.events:
			if !open {
				v.t.Fatalf("the stream has ended before the page showed %s", what)
			}
			v.takes(e)
		case <-late:
			v.t.Fatalf("the page does not show %s; the rows are %+v, the detail %+v", what, v.rows, v.detail)
		}
	}
}

func (v *visitor) takes(e [2]string) {
	v.t.Helper()
	v.got[e[0]]++
	if strings.Contains(e[1], `"rows":null`) || strings.Contains(e[1], `"tables":null`) {
		v.t.Errorf("an event has null where the page wants a list: %s", e[1])
	}
	var into any
	var l struct {
		All, Ready bool
		Rows       []row
		Error      string
		Since      int64
		Lost       int64
		More       int
	}
	var d detail
	var all []report
	switch e[0] {
	case "hint":
		into = &v.hint
	case "list":
		into = &l
	case "detail":
		into = &d
	case "coordinators":
		into = &all
	default:
		return
	}
	if err := json.Unmarshal([]byte(e[1]), into); err != nil {
		v.t.Fatalf("event %s: %v: %s", e[0], err, e[1])
	}
	switch e[0] {
	case "detail":
		v.detail = d
		return
	case "hint":
		return
	case "coordinators":
		v.reports = make(map[string]report)
		for _, r := range all {
			v.reports[r.Name] = r
		}
		return
	}
	if l.All {
		clear(v.rows)
	}
	for _, r := range l.Rows {
		v.rows[r.Line] = r
	}
	v.ready, v.err, v.since, v.lost, v.more = l.Ready, l.Error, l.Since, l.Lost, l.More
}

// table returns a column of a table of the detail.
func (v *visitor) table(title string, column int) (cells []string) {
	for _, t := range v.detail.Tables {
		if t.Title == title {
			for _, r := range t.Rows {
				cells = append(cells, r[column])
			}
		}
	}
	return cells
}
