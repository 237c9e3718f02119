package page_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/succession-dev/succession/cmd/succession/internal/page"
	"github.com/succession-dev/succession/memory"
)

// stand has n members of one session stand in each of the lines.
func stand(t *testing.T, c *memory.Coordinator, n int, value string, lines ...string) {
	t.Helper()
	b := c.Client("members")
	t.Cleanup(func() { b.Close() })
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		for range n {
			if _, err := s.Join(t.Context(), line, value, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Nothing is asked of the coordinator for a name that is not in the list, and the page says what to do.
func TestOnlyWhatIsListed(t *testing.T) {
	inBubble(t, page.Options{}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		stand(t, c, 1, "web-1", "reports")
		v := visit(t, s, "other")
		v.sees("why not", func() bool { return strings.Contains(v.hint, "succession ui NAME") })
		if n := c.Requests().Of("page", memory.OpLine, memory.OpWatchLine, memory.OpWatch); n != 0 {
			t.Errorf("%d requests were about one line", n)
		}
		if code, text := answer(s, request(http.MethodGet, "/timeline.svg?name=other", "")); code != 404 || !strings.Contains(text, "succession ui NAME") {
			t.Errorf("the picture is answered with %d, %s", code, text)
		}
		stand(t, c, 1, "web-1", "other")
		v.sees("who leads by then", func() bool { return v.detail.Leader != nil && v.detail.Leader.ID == "web-1" })
	})
}

// Nothing is done to an election that is not in the list, and four acts are done at a time: each keeps a connection to the
// coordinator busy.
func TestFewActs(t *testing.T) {
	var names []string
	for i := range 9 {
		names = append(names, fmt.Sprintf("job-%d", i))
	}
	inBubble(t, page.Options{Names: names, Allow: []page.Act{page.Resign, page.Pause}}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		stand(t, c, 1, "web-1", names...)
		for target, body := range map[string]string{
			"/pause":  `{"name":"other","reason":"for fun"}`,
			"/resign": `{"name":"other","token":"1"}`,
			"/resume": `{"name":"other","token":"1"}`,
		} {
			if code, text := do(s, target, body); code != 404 || !strings.Contains(text, "succession ui NAME") {
				t.Errorf("%s is answered with %d, %s", target, code, text)
			}
		}
		if lines, err := c.Client("operator").Session(t.Context()); err != nil {
			t.Fatal(err)
		} else if l, err := lines.Line(t.Context(), "other"); err != nil || len(l.Members) > 0 {
			t.Errorf("in the line that nobody has named stand %v, %v", l.Members, err)
		}
		codes := make(chan int)
		for _, name := range names {
			go func() { // the one who stands there does not give way, so the pause waits
				code, _ := do(s, "/pause", `{"name":"`+name+`","reason":"moved"}`)
				codes <- code
			}()
		}
		refused := 0
		for range names {
			if code := <-codes; code == 503 {
				refused++
			}
		}
		if refused != 5 {
			t.Errorf("%d of 9 acts were refused, want 5", refused)
		}
	})
}

// Sixteen elections are observed at a time. Who wants another one is told so, and gets it when a page has gone.
func TestFewObservers(t *testing.T) {
	inBubble(t, page.Options{}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		const most = 16
		var all []*visitor
		for i := range most {
			name := fmt.Sprintf("job-%d", i)
			stand(t, c, 1, "web-1", name)
			v := visit(t, s, name)
			v.sees("the leader", func() bool { return v.detail.Leader != nil })
			all = append(all, v)
		}
		stand(t, c, 1, "web-1", "more")
		late := visit(t, s, "more")
		late.sees("why not", func() bool { return strings.Contains(late.hint, "close a page") })
		same := visit(t, s, "job-0")
		same.sees("the leader", func() bool { return same.detail.Leader != nil })
		all[1].goes()
		late.sees("the leader", func() bool { return late.detail.Leader != nil })
	})
}

// A hundred pages are served at a time. One more hears why not, and what to do.
func TestFewStreams(t *testing.T) {
	inBubble(t, page.Options{}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		stand(t, c, 1, "web-1", "reports")
		var all []*visitor
		for range 100 {
			v := visit(t, s, "reports")
			v.sees("the leader", func() bool { return v.detail.Leader != nil })
			all = append(all, v)
		}
		for _, target := range []string{"/", "/events", "/events?show=reports"} {
			if code, text := answer(s, endless(t, target)); code != 503 || !strings.Contains(text, "close one") {
				t.Errorf("%s is answered with %d, %.100s", target, code, text)
			}
		}
		all[0].goes()
		v := visit(t, s, "reports")
		v.sees("the leader", func() bool { return v.detail.Leader != nil })
	})
}

// endless returns a request that ends after a while, as that for a stream does not end by itself.
func endless(t *testing.T, target string) *http.Request {
	r := request(http.MethodGet, target, "")
	ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
	t.Cleanup(cancel)
	return r.WithContext(ctx)
}

// One candidate may fill a line with values of any length. The page shows the beginning, and says how much more there is.
func TestLongLine(t *testing.T) {
	inBubble(t, page.Options{}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		value := strings.Repeat("\x01", 4000)
		stand(t, c, 3000, value, "reports")
		v := visit(t, s, "reports")
		v.sees("the line", func() bool { return len(v.detail.Tables) > 0 })
		line := v.detail.Tables[0]
		if len(line.Rows) != 1000 || line.More != 2000 {
			t.Errorf("the line has %d rows, and %d more", len(line.Rows), line.More)
		}
		if id := v.detail.Leader.ID; len(id) > 600 || !strings.Contains(id, "4000 bytes in all") {
			t.Errorf("the leader is %q", id)
		}
		if id := v.rows["reports"].Who; len(id) > 600 {
			t.Errorf("the list has %q", id)
		}
		text, _ := json.Marshal(v.detail)
		if len(text) > 5<<20 {
			t.Errorf("the detail has %d bytes", len(text))
		}
	})
}

// stuck is a response that nobody reads any more when it is long.
type stuck struct {
	*httptest.ResponseRecorder
	ctx  context.Context
	long chan<- int
}

func (s *stuck) Write(b []byte) (int, error) {
	if len(b) < 1<<17 {
		return len(b), nil
	}
	s.long <- len(b)
	<-s.ctx.Done()
	runtime.KeepAlive(b)
	return 0, s.ctx.Err()
}

func (s *stuck) SetWriteDeadline(time.Time) error { return nil }

// A hundred pages that do not read what they are told keep the same bytes, and not each its own: of a long line, and of a long list, also if
// that changes all the time.
func TestStreamsShare(t *testing.T) {
	list := func(lines int) func(t *testing.T, c *memory.Coordinator) {
		return func(t *testing.T, c *memory.Coordinator) {
			var names []string
			for i := range lines {
				names = append(names, fmt.Sprintf("job-%05d", i))
			}
			stand(t, c, 1, strings.Repeat("\x01", 4000), names...)
		}
	}
	for name, test := range map[string]struct {
		show  string
		stand func(*testing.T, *memory.Coordinator)
		pages int
		most  int // how many times the bytes are kept
	}{
		"line":              {"reports", func(t *testing.T, c *memory.Coordinator) { stand(t, c, 1000, strings.Repeat("\x01", 4000), "reports") }, 99, 10},
		"list":              {"", list(1000), 99, 10},
		"list that changes": {"", list(250), 30, 15}, // in half a minute
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, page.Options{}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
				test.stand(t, c)
				b := c.Client("more")
				defer b.Close()
				members, err := b.Session(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				v := visit(t, s, test.show)
				v.sees("all", func() bool { return len(v.detail.Tables) > 0 || test.show == "" && v.ready })
				heap := func() int {
					runtime.GC()
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					return int(m.HeapAlloc)
				}
				before := heap()
				long := make(chan int)
				var streams sync.WaitGroup
				asks := request(http.MethodGet, "/events?show="+test.show, "")
				ctx, cancel := context.WithCancel(asks.Context())
				size := 0
				for i := range test.pages {
					streams.Go(func() {
						s.ServeHTTP(&stuck{httptest.NewRecorder(), ctx, long}, asks.WithContext(ctx))
					})
					size = <-long
					if name == "list that changes" {
						before := len(v.rows)
						if _, err := members.Join(t.Context(), fmt.Sprint("more-", i), "web-1", ""); err != nil {
							t.Fatal(err)
						}
						v.sees("the change", func() bool { return len(v.rows) > before })
					}
				}
				if grown := heap() - before; grown > test.most*size {
					t.Errorf("%d pages that are told %d KiB keep %d KiB", test.pages, size>>10, grown>>10)
				}
				cancel()
				streams.Wait()
			})
		})
	}
}

// A page is told all that changes, also while the whole list would be told again and again.
func TestManyChanges(t *testing.T) {
	inBubble(t, page.Options{}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		v := visit(t, s, "")
		for round := range 5 {
			var names []string
			for i := range 200 {
				names = append(names, fmt.Sprintf("job-%d-%03d", round, i))
			}
			stand(t, c, 1, "web-1", names...)
			v.sees("all", func() bool { return v.ready && len(v.rows) == 200*(round+1) })
		}
		time.Sleep(10 * time.Second)
		for len(v.events) > 0 {
			v.takes(<-v.events)
		}
		before := v.got["list"]
		time.Sleep(time.Minute)
		for len(v.events) > 0 {
			v.takes(<-v.events)
		}
		if n := v.got["list"] - before; n > 0 {
			t.Errorf("nothing changes, and is told %d times", n)
		}
	})
}

// Whoever may make lines may make any number. Ten thousand are looked at, and the page says how many more there are, as the overview does.
func TestManyLines(t *testing.T) {
	inEstate(t, page.Options{}, []string{"orders"}, nil, func(t *testing.T, e *estate) {
		var names []string
		for i := range 10_003 {
			names = append(names, fmt.Sprintf("job-%05d", i))
		}
		stand(t, e.of["orders"], 1, "web-1", names...)
		v := visitAt(t, e.Server, "/orders/events")
		v.sees("that there are more", func() bool { return v.ready && v.more == 3 })
		if len(v.rows) != 10_000 {
			t.Errorf("%d are listed", len(v.rows))
		}
		o := visitAt(t, e.Server, "/events")
		o.sees("that there are more", func() bool { return o.reports["orders"].Elections == 10_000 && o.reports["orders"].More == 3 })
	})
}
