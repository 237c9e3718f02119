package page_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/cmd/succession/internal/page"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/memory"
)

// What leaders have written down is shown also from before the page was open, and from while it was not.
func TestHistory(t *testing.T) {
	inBubble(t, page.Options{}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		began := time.Now()
		b := c.Client("web")
		defer b.Close()
		leads := func(id string, keeps int) (resign func()) {
			t.Helper()
			term, err := elect.New(b, "reports", &elect.Options{ID: id, History: keeps}).Campaign(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			return func() { term.Resign(t.Context()) }
		}
		for range 2 {
			leads("web-1", 100)()
		}
		killed := c.Client("killed") // its end is known by the next term alone
		term, err := elect.New(killed, "reports", &elect.Options{ID: "web-2", History: 100}).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		killed.Kill()
		<-term.Context().Done()
		resign := leads("web-3", 100)

		v := visit(t, s, "reports")
		v.sees("four terms", func() bool {
			return len(v.detail.Terms) == 4 && v.detail.Leader != nil && v.detail.Leader.ID == "web-3"
		})
		ms := func(d time.Duration) int64 { return began.Add(d).UnixMilli() }
		first, third, last := v.detail.Terms[0], v.detail.Terms[2], v.detail.Terms[3]
		if first.ID != "web-1" || !first.Told || first.From != ms(0) || first.To != ms(time.Minute) || first.Why != "resigned" {
			t.Errorf("the first term is %+v", first)
		}
		if third.ID != "web-2" || !third.Told || !third.Late || third.To != last.From || third.Why != "did not say why" {
			t.Errorf("the third term is %+v", third)
		}
		if last.Token != v.detail.Leader.Token || last.Told || last.Before || last.To != 0 || last.From <= ms(3*time.Minute) {
			t.Errorf("the last term is %+v", last)
		}

		v.goes()
		time.Sleep(time.Minute) // nobody looks
		resign()
		leads("web-4", 100)()
		defer leads("web-5", 0)()
		v = visit(t, s, "reports")
		v.sees("the term that nobody saw", func() bool { return len(v.detail.Terms) == 6 })
		third, fourth, fifth := v.detail.Terms[3], v.detail.Terms[4], v.detail.Terms[5]
		if third.ID != "web-3" || third.Told || third.Why != "resigned" || third.To > fourth.From {
			t.Errorf("the fourth term is %+v", third)
		}
		if fourth.ID != "web-4" || !fourth.Told || fourth.Late || fifth.ID != "web-5" || fifth.Told {
			t.Errorf("the last terms are %+v, %+v", fourth, fifth)
		}
		if code, svg := answer(s, request(http.MethodGet, "/timeline.svg?name=reports", "")); code != 200 || !strings.Contains(svg, "web-1") || !strings.Contains(svg, "web-4") {
			t.Errorf("the picture is %d, %s", code, svg)
		}
	})
}

// A record with the name of the history that is something else does not hide the election.
func TestNoHistory(t *testing.T) {
	inBubble(t, page.Options{}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		b := c.Client("own")
		defer b.Close()
		session, err := b.Session(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := session.Put(t.Context(), "reports.history", []byte("my own"), nil); err != nil {
			t.Fatal(err)
		}
		candidate(t, c, "reports", "web-1")
		v := visit(t, s, "reports")
		v.sees("the leader, and why there is no history", func() bool {
			return v.detail.Leader != nil && v.detail.Error == "" && strings.Contains(v.detail.Untold, "it is no history of an election")
		})
	})
}

// One leader may write down any number of terms, at any time. The page shows the newest, and its picture stays a small one.
func TestHistoryOfOthers(t *testing.T) {
	inBubble(t, page.Options{}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		candidate(t, c, "reports", "web-1")
		b := c.Client("other")
		defer b.Close()
		session, err := b.Session(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		terms := []string{`{"id":"first","token":1,"began":"0001-01-01T00:00:01Z","ended":"2262-12-31T00:00:00Z"}`}
		for i := range 3000 {
			terms = append(terms, fmt.Sprintf(`{"id":"%d","token":%d,"began":"%04d-01-01T00:00:00Z"}`, i, i+2, i+1))
		}
		value := `{"history":1,"terms":[` + strings.Join(terms, ",") + `]}`
		if _, err := session.Put(t.Context(), "reports.history", []byte(value), nil); err != nil {
			t.Fatal(err)
		}
		code, svg := answer(s, request(http.MethodGet, "/timeline.svg?name=reports", ""))
		if code != 200 || len(svg) > 200_000 || !strings.Contains(svg, "2999: token 3001") {
			t.Errorf("the picture is %d, of %d bytes", code, len(svg))
		}
	})
}

// A writer notes the bound of what is written to it.
type bounded struct {
	*httptest.ResponseRecorder
	by time.Time
}

func (w *bounded) SetWriteDeadline(by time.Time) error {
	w.by = by
	return nil
}

// Whoever asks and does not read keeps no handler.
func TestAnswersAreBounded(t *testing.T) {
	inBubble(t, page.Options{}, func(t *testing.T, _ *memory.Coordinator, s *page.Server) {
		for _, target := range []string{"/", "/files/page.js", "/timeline.svg?name=reports", "//"} {
			for _, host := range []string{"localhost", "another.example.com"} {
				w := &bounded{ResponseRecorder: httptest.NewRecorder()}
				r := request(http.MethodGet, target, "")
				r.Host = host
				s.ServeHTTP(w, r)
				if w.by.IsZero() || time.Until(w.by) > time.Minute {
					t.Errorf("%s of %s may be written until %v", target, host, w.by)
				}
			}
		}
	})
}

// The page proposes a command with the addresses that a header has. Whoever may write it must not have others run something.
func TestProposedCommandIsQuoted(t *testing.T) {
	inBubble(t, page.Options{}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		candidate(t, c, "reports", "web-1")
		b := c.Client("other")
		defer b.Close()
		session, err := b.Session(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		h := header.Header{Migration: header.Migration{ID: "1", From: "etcd://h1:2379/app", To: "x';$(touch /tmp/x)\n#", Step: "both"}}
		if _, err := session.Put(t.Context(), "reports", h.Encode(), nil); err != nil {
			t.Fatal(err)
		}
		v := visit(t, s, "reports")
		v.sees("a migration", func() bool { return v.detail.Migration != nil })
		if next, want := v.detail.Migration.Next, `--from etcd://h1:2379/app --to 'x'\'';$(touch /tmp/x); #' reports`; !strings.HasSuffix(next, want) {
			t.Errorf("the page proposes %s; want %s", next, want)
		}
	})
}
