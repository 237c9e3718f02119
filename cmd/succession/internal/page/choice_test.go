package page_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/cmd/succession/internal/page"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/memory"
)

// do asks for an act, as the page does.
func do(s *page.Server, path, body string) (int, string) {
	r := request(http.MethodPost, path, body)
	for k, v := range map[string]string{"Origin": "http://localhost", "Content-Type": "application/json", "Succession-Page": "1"} {
		r.Header.Set(k, v)
	}
	return answer(s, r)
}

// stands has a process stand in line until the test ends, and lead whenever it can.
func stands(t *testing.T, c *memory.Coordinator, name string, o elect.Options) {
	t.Helper()
	b := c.Client(o.ID)
	ctx, cancel := context.WithCancel(t.Context())
	joined, ended := make(chan struct{}, 100), make(chan struct{})
	o.Trace = func(ev trace.Event) {
		if ev.Kind == trace.Joined {
			joined <- struct{}{}
		}
	}
	go func() {
		defer close(ended)
		elect.New(b, name, &o).Run(ctx, func(ctx context.Context, term *elect.Term) error {
			<-ctx.Done()
			return nil
		})
	}()
	<-joined
	t.Cleanup(func() {
		cancel()
		<-ended
		b.Close()
	})
}

// Nobody leads a paused election, and the page says who has paused it and why, until it is resumed.
func TestPause(t *testing.T) {
	inBubble(t, page.Options{Allow: []page.Act{page.Pause}, By: "anna@ops-1"}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		stands(t, c, "reports", elect.Options{ID: "web-1"})
		v := visit(t, s, "reports")
		v.sees("the leader", func() bool { return v.detail.Leader != nil && v.detail.Paused == nil })
		for body, code := range map[string]int{
			`{"name":"reports","reason":" "}`:            400,
			`{"name":"reports"}`:                         400,
			`{"name":"reports","reason":"two\nlines"}`:   400,
			`{"name":"../reports","reason":"moved"}`:     400,
			`{"name":"reports","reason":"moved","by":1}`: 400,
		} {
			if got, text := do(s, "/pause", body); got != code {
				t.Errorf("%s: the answer is %d, %s", body, got, text)
			}
		}
		if code, text := do(s, "/resume", `{"name":"reports","token":"1"}`); code != 409 {
			t.Errorf("resumed without a pause, the answer is %d, %s", code, text)
		}
		if code, text := do(s, "/pause", `{"name":"reports","reason":"<b>the disk</b>"}`); code != 204 {
			t.Fatalf("the answer is %d, %s", code, text)
		}
		v.sees("the pause", func() bool { return v.detail.Paused != nil && v.detail.Leader == nil && v.detail.State == "paused" })
		const by = "the page of anna@ops-1, for 192.0.2.1" // as net/http/httptest has it
		if p := v.detail.Paused; p.By != by || p.Reason != "<b>the disk</b>" || p.Front != 0 {
			t.Errorf("the pause is %+v", p)
		}
		v.sees("the pause in the list", func() bool {
			r := v.rows["reports"]
			return r.State == "paused by "+by+": <b>the disk</b>" && r.Mood == "busy" && r.Kind == "election" && r.Who == ""
		})
		v.sees("the line", func() bool { return slices.Equal(v.table("Line", 3), []string{"paused: <b>the disk</b>", "waits"}) })
		if code, text := do(s, "/pause", `{"name":"reports","reason":"again"}`); code != 409 || !strings.Contains(text, "paused by "+by) {
			t.Errorf("paused twice, the answer is %d, %s", code, text)
		}
		if code, text := do(s, "/resume", `{"name":"reports","token":"1"}`); code != 409 {
			t.Errorf("resumed with the token of another gate, the answer is %d, %s", code, text)
		}
		if code, text := do(s, "/resume", `{"name":"reports","token":"`+v.detail.Paused.Token+`"}`); code != 204 {
			t.Errorf("resumed, the answer is %d, %s", code, text)
		}
		v.sees("that it is open again", func() bool {
			return v.detail.Leader != nil && v.detail.Paused == nil && v.rows["reports"].Who == "web-1" && v.rows["reports"].State == "leads"
		})
	})
}

// Candidates of other libraries lead before a pause holds: the answer and the page say so.
func TestPauseBehindOthers(t *testing.T) {
	inBubble(t, page.Options{Allow: []page.Act{page.Pause, page.Resign}}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		b := c.Client("foreign")
		defer b.Close()
		session, err := b.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m, err := session.Join(t.Context(), "reports", "cron-7", "")
		if err != nil {
			t.Fatal(err)
		}
		if code, text := do(s, "/pause", `{"name":"reports","reason":"moved"}`); code != 504 || !strings.Contains(text, "in front of the gate still stand cron-7") {
			t.Errorf("the answer is %d, %s", code, text)
		}
		v := visit(t, s, "reports")
		v.sees("the gate behind", func() bool {
			return v.detail.Leader != nil && v.detail.Leader.ID == "cron-7" && v.detail.Paused != nil && v.detail.Paused.Front == 1
		})
		if err := session.Leave(t.Context(), m.Member); err != nil {
			t.Fatal(err)
		}
		v.sees("the gate in front", func() bool {
			return v.detail.Paused != nil && v.detail.Paused.Front == 0 && v.rows["reports"].Mood == "busy"
		})
		if code, text := do(s, "/resign", `{"name":"reports","token":"`+v.detail.Paused.Token+`"}`); code != 409 || !strings.Contains(text, "paused") {
			t.Errorf("asked to resign while paused, the answer is %d, %s", code, text)
		}
	})
}

// A pause that has not begun is not said to go on.
func TestPauseUnreached(t *testing.T) {
	inBubble(t, page.Options{Allow: []page.Act{page.Pause}}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		stands(t, c, "reports", elect.Options{ID: "web-1"})
		v := visit(t, s, "reports")
		v.sees("the leader", func() bool { return v.detail.Leader != nil })
		c.Pause()
		if code, text := do(s, "/pause", `{"name":"reports","reason":"moved"}`); code != 502 || !strings.Contains(text, "is not paused") {
			t.Errorf("the answer is %d, %s", code, text)
		}
		c.Resume()
	})
}

// A click that comes late does not end the pause that somebody else has begun meanwhile.
func TestResumeLate(t *testing.T) {
	inBubble(t, page.Options{Allow: []page.Act{page.Pause}}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		b := c.Client("ops")
		defer b.Close()
		e, op := elect.New(b, "reports", nil), operate.New(b, "reports", "ops")
		var tokens []uint64
		for _, why := range []string{"the disk is moved", "the disk is full"} {
			if _, err := op.Pause(t.Context(), why); err != nil {
				t.Fatal(err)
			}
			now, err := e.State(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if tokens = append(tokens, now.Gate.Token); len(tokens) == 1 {
				if _, err := op.Resume(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, token := range []string{fmt.Sprint(tokens[0]), "0", ""} {
			if code, text := do(s, "/resume", `{"name":"reports","token":"`+token+`"}`); code != 409 && code != 400 {
				t.Errorf("resumed with the token %q, the answer is %d, %s", token, code, text)
			}
		}
		if now, err := e.State(t.Context()); err != nil || !now.Paused || now.Gate.Token != tokens[1] {
			t.Errorf("after that: %+v, %v; want the second pause", now, err)
		}
	})
}

// Where the backend has no pins, the page says that nothing can be paused.
func TestNoPins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(nil)
		b := c.Client("page")
		defer b.Close()
		for _, pins := range []bool{false, true} {
			of := backend.Backend(b)
			if !pins {
				of = view.Of(b, func(s backend.Session) backend.Session { return pinless{s} })
			}
			s := page.New(of, page.Options{Names: []string{"reports"}, Allow: []page.Act{page.Pause}})
			v := visit(t, s, "reports")
			v.sees("the election", func() bool { return v.detail.State == "nobody leads" })
			if v.detail.NoPause == pins {
				t.Errorf("with pins: %v; that nothing can be paused: %v", pins, v.detail.NoPause)
			}
			if code, text := do(s, "/pause", `{"name":"reports","reason":"moved"}`); (code == 501) == pins {
				t.Errorf("with pins: %v; the answer is %d, %s", pins, code, text)
			}
			s.Close()
		}
	})
}

type pinless struct{ backend.Session }

func (pinless) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	return kit.NoPins{}.Pin(ctx, m, h, at)
}

// What is not allowed is refused, and the answer says how to allow it.
func TestNotAllowed(t *testing.T) {
	for _, c := range []struct {
		allow []page.Act
		path  string
		says  string
	}{
		{nil, "/pause", "--allow pause"},
		{[]page.Act{page.Resign}, "/pause", "--allow pause"},
		{[]page.Act{page.Resign}, "/resume", "--allow pause"},
		{[]page.Act{page.Pause}, "/resign", "--allow resign"},
	} {
		s := server(t, page.Options{Allow: c.allow})
		if code, text := do(s, c.path, `{"name":"reports","token":"1","reason":"moved"}`); code != 403 || !strings.Contains(text, c.says) {
			t.Errorf("%s with %v: the answer is %d, %s", c.path, c.allow, code, text)
		}
	}
}

// The line shows what counts when the next one leads, and the leader can be asked to hand over to one.
func TestChoice(t *testing.T) {
	inBubble(t, page.Options{Allow: []page.Act{page.Resign}}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		cold := errors.New("the cache is cold")
		stands(t, c, "reports", elect.Options{ID: "web-1", Site: "fra"})
		stands(t, c, "reports", elect.Options{ID: "web-2", Priority: 5, Ready: func(context.Context) error { return cold }})
		stands(t, c, "reports", elect.Options{ID: "web-3", Site: "ams"})
		stands(t, c, "reports", elect.Options{ID: "web-4"})
		v := visit(t, s, "reports")
		v.sees("the line", func() bool {
			return slices.Equal(v.table("Line", 5), []string{"leads", "not ready: the cache is cold", "waits", "waits"})
		})
		if p, site := v.table("Line", 3), v.table("Line", 4); !slices.Equal(p, []string{"0", "5", "0", "0"}) || !slices.Equal(site, []string{"fra", "", "ams", ""}) {
			t.Errorf("the priorities are %q, the sites %q", p, site)
		}
		if note := v.detail.Tables[0].Note; note != "Not ready: web-2: the cache is cold" {
			t.Errorf("the note is %q", note)
		}
		to := v.detail.Tables[0].To
		if len(to) != 4 || to[0] != "" || to[1] != "" || to[2] == "" || to[3] == "" {
			t.Fatalf("the leader can hand over to %q", to)
		}
		ask := func(token, to string) (int, string) {
			return do(s, "/resign", `{"name":"reports","token":"`+token+`","to":"`+to+`"}`)
		}
		if code, text := ask("7", to[3]); code != 409 {
			t.Errorf("asked to end another term, the answer is %d, %s", code, text)
		}
		if code, text := ask("1", "nobody"); code != 400 {
			t.Errorf("in favour of nobody, the answer is %d, %s", code, text)
		}
		if code, text := ask("1", "web-2"); code != 409 || !strings.Contains(text, "the cache is cold") {
			t.Errorf("in favour of one that is not ready, the answer is %d, %s", code, text)
		}
		if code, text := ask("1", to[3]); code != 204 {
			t.Errorf("the answer is %d, %s", code, text)
		}
		v.sees("who was wished for", func() bool { return v.detail.Leader != nil && v.detail.Leader.ID == "web-4" })
	})
}

// A leader that is not ready, and has nobody to hand over to, is shown as that.
func TestLeaderNotReady(t *testing.T) {
	inBubble(t, page.Options{}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		broken := make(chan struct{})
		stands(t, c, "reports", elect.Options{ID: "web-1", Ready: func(context.Context) error {
			select {
			case <-broken:
				return errors.New("the disk is full")
			default:
				return nil
			}
		}})
		v := visit(t, s, "reports")
		v.sees("the leader", func() bool { return v.detail.State == "leads" })
		close(broken)
		v.sees("why it is not ready", func() bool {
			return v.detail.State == "leads, not ready" && v.detail.Leader.NotReady == "the disk is full" &&
				slices.Equal(v.table("Line", 3), []string{"leads, not ready: the disk is full"})
		})
	})
}

// Readiness is asked of the election that is shown, and of no other.
func TestReadinessCosts(t *testing.T) {
	inBubble(t, page.Options{}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		stands(t, c, "reports", elect.Options{ID: "web-1", Ready: func(context.Context) error { return nil }})
		v := visit(t, s, "")
		v.sees("the leader", func() bool { return v.rows["reports"].Who == "web-1" })
		before := c.Requests()
		time.Sleep(time.Minute)
		if n := c.Requests().Since(before); n.Of("page", memory.OpList, memory.OpGet) != 0 || n.Of("page", memory.OpHead) == 0 {
			t.Errorf("while the list alone is shown the coordinator is asked %v", n)
		}
	})
}

// What a leader says of itself says nothing of the next one, nor of a line in which nobody stands any more: neither where the coordinator
// tells all at once, nor where it tells one line at a time.
func TestNotReadyIsOfOneLeader(t *testing.T) {
	inBubbles(t, page.Options{}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		run, end := context.WithCancel(t.Context())
		cold := c.Client("cold")
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			o := elect.Options{ID: "cold", Ready: func(context.Context) error { return errors.New("the cache is cold") }}
			elect.New(cold, "reports", &o).Run(run, func(ctx context.Context, _ *elect.Term) error {
				<-ctx.Done()
				return nil
			})
		}()
		v := visit(t, s, "reports")
		v.sees("that it is not ready", func() bool { return v.rows["reports"].State == "leads, not ready" })
		leave := candidate(t, c, "reports", "warm")
		v.sees("the next leader", func() bool { return v.rows["reports"].Who == "warm" })
		if r := v.rows["reports"]; r.State != "leads" || r.Mood != "good" {
			t.Errorf("the next leader is %+v", r)
		}
		leave()
		v.sees("that it is not ready", func() bool { return v.rows["reports"].State == "leads, not ready" })
		end()
		<-ended
		cold.Close()
		v.sees("that nobody leads", func() bool { return v.rows["reports"].Who == "" })
		if r := v.rows["reports"]; r.State != "nobody leads" {
			t.Errorf("where nobody leads the state is %q", r.State)
		}
	})
}
