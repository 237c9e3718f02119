package page_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/cmd/succession/internal/page"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
)

// An estate is several coordinators, whose pages one server has.
type estate struct {
	*page.Server
	of map[string]*memory.Coordinator
	by map[string]*memory.Backend // of the server

	explaining atomic.Int32 // how many outages are being explained
	explained  atomic.Int32 // how often one was explained
}

// inEstate runs f in virtual time with coordinators of these names, in each of which the elections named are to be shown.
func inEstate(t *testing.T, o page.Options, names, elections []string, f func(t *testing.T, e *estate)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := &estate{of: make(map[string]*memory.Coordinator), by: make(map[string]*memory.Backend)}
		var all []page.Coordinator
		for _, name := range names {
			e.of[name] = memory.New(nil)
			e.by[name] = e.of[name].Client("page")
			all = append(all, page.Coordinator{Name: name, URL: "etcd://" + name, Names: elections, Backend: e.by[name], Explain: func(ctx context.Context) string {
				e.explaining.Add(1)
				defer e.explaining.Add(-1)
				select { // it takes longer than the outage if that is short
				case <-time.After(5 * time.Second):
					return fmt.Sprintf("nothing listens there: %d", e.explained.Add(1))
				case <-ctx.Done():
					return "nobody has looked"
				}
			}})
		}
		e.Server = page.NewOverview(all, o)
		t.Cleanup(func() {
			e.Close()
			for _, b := range e.by {
				b.Close()
			}
		})
		f(t, e)
	})
}

// The overview says of each coordinator how many elections it has, and how many are in trouble. It changes by itself, and so do the
// pages of others, when one coordinator is not heard from, and when it is again.
func TestOverview(t *testing.T) {
	inEstate(t, page.Options{}, []string{"orders", "payments"}, nil, func(t *testing.T, e *estate) {
		candidate(t, e.of["orders"], "reports", "web-1")
		candidate(t, e.of["payments"], "mails", "web-2")
		leave := candidate(t, e.of["payments"], "reports", "web-3")
		v := visitAt(t, e.Server, "/events")
		v.sees("all", func() bool {
			return v.reports["orders"] == report{Name: "orders", URL: "etcd://orders", Elections: 1, Ready: true} &&
				v.reports["payments"] == report{Name: "payments", URL: "etcd://payments", Elections: 2, Ready: true}
		})
		p := visitAt(t, e.Server, "/orders/events?show=reports")
		p.sees("its own elections", func() bool {
			return p.ready && len(p.rows) == 1 && p.rows["reports"].Who == "web-1" && p.detail.Leader != nil && p.detail.Leader.ID == "web-1"
		})
		leave()
		v.sees("the trouble", func() bool { return v.reports["payments"].Trouble == 1 && v.reports["orders"].Trouble == 0 })
		soon := func(what string, do func(), ok func() bool) {
			t.Helper()
			begin := time.Now()
			do()
			v.sees(what, ok)
			if took := time.Since(begin); took > 2*time.Second {
				t.Errorf("the overview showed %s only after %v", what, took)
			}
		}
		out := func() bool {
			return v.reports["payments"].Lost != 0 && v.reports["payments"].Elections == 2 && v.reports["orders"].Lost == 0
		}
		back := func() bool { return v.reports["payments"].Lost == 0 && v.reports["payments"].Ready }
		for i := range 10 { // whatever the overview waits for at that moment
			time.Sleep(time.Duration(i) * 100 * time.Millisecond)
			soon("an outage", e.by["payments"].Cut, out)
			if why := v.reports["payments"].Error; why == "nobody has looked" {
				t.Errorf("outage %d has the reason of an earlier one", i)
			}
			soon("the end of an outage", e.by["payments"].Heal, back)
			synctest.Wait()
			if e.explaining.Load() != 0 {
				t.Errorf("outage %d is over, and is still being explained", i)
			}
		}
		soon("the outage", e.by["payments"].Cut, out)
		begin := time.Now()
		candidate(t, e.of["orders"], "mails", "web-4")
		p.sees("a new election", func() bool { return p.rows["mails"].Who == "web-4" && p.lost == 0 })
		v.sees("a new election", func() bool { return v.reports["orders"].Elections == 2 })
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("while another coordinator is not heard from, a new election is seen after %v", took)
		}
		time.Sleep(time.Minute)
		candidate(t, e.of["payments"], "reports", "web-5")
		soon("that it is back", e.by["payments"].Heal, func() bool {
			return v.reports["payments"] == report{Name: "payments", URL: "etcd://payments", Elections: 2, Ready: true}
		})
	})
}

// A coordinator that is not there at the start is shown as such, and the others as they are.
func TestOverviewOfOneThatIsNotThere(t *testing.T) {
	inEstate(t, page.Options{}, []string{"orders", "payments"}, []string{"nightly"}, func(t *testing.T, e *estate) {
		e.by["payments"].Cut()
		candidate(t, e.of["orders"], "reports", "web-1")
		candidate(t, e.of["payments"], "reports", "web-2")
		begin := time.Now()
		v := visitAt(t, e.Server, "/events")
		v.sees("the outage", func() bool {
			return v.reports["payments"].Lost != 0 && v.reports["orders"] == report{Name: "orders", URL: "etcd://orders", Elections: 2, Trouble: 1, Ready: true}
		})
		if r := v.reports["payments"]; r.Ready || r.Elections+r.Trouble > 0 {
			t.Errorf("of the one that is not there it says %+v", r)
		}
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("it is shown after %v", took)
		}
		for i := range 3 { // it may change
			v.sees("why", func() bool { return v.reports["payments"].Error == fmt.Sprintf("nothing listens there: %d", i+1) })
		}
		e.by["payments"].Heal()
		v.sees("that it is there", func() bool {
			return v.reports["payments"] == report{Name: "payments", URL: "etcd://payments", Elections: 2, Trouble: 1, Ready: true}
		})
	})
}

// What is known from when somebody looked last is not shown as if it were so now: neither where the coordinator was not heard from by
// then, and is now, nor where it is the other way round.
func TestOverviewIsOpenedAgain(t *testing.T) {
	for _, outage := range []bool{true, false} { // when nobody looks any more
		inEstate(t, page.Options{}, []string{"orders"}, nil, func(t *testing.T, e *estate) {
			candidate(t, e.of["orders"], "reports", "web-1")
			v := visitAt(t, e.Server, "/events")
			v.sees("the election", func() bool { return v.reports["orders"].Ready && v.reports["orders"].Elections == 1 })
			p := visitAt(t, e.Server, "/orders/events?show=reports")
			p.sees("the leader", func() bool { return p.detail.Leader != nil })
			p.goes()
			if outage {
				e.by["orders"].Cut()
				v.sees("the outage", func() bool { return v.reports["orders"].Lost != 0 })
			}
			v.goes()
			time.Sleep(time.Minute)
			candidate(t, e.of["orders"], "mails", "web-2")
			if outage {
				e.by["orders"].Heal()
			} else {
				e.by["orders"].Cut()
			}
			for _, path := range []string{"/events", "/orders/events?show=reports"} {
				v := visitAt(t, e.Server, path)
				v.sees("something", func() bool { return v.got["list"] > 0 || v.got["coordinators"] > 0 })
				if r := v.reports["orders"]; v.ready || r.Ready || r.Elections > 0 || r.Lost != 0 || v.lost != 0 {
					t.Errorf("%s begins with what was: %+v, ready %v, lost %v", path, r, v.ready, v.lost)
				}
				if outage {
					v.sees("both elections", func() bool { return v.reports["orders"].Elections == 2 || v.ready && len(v.rows) == 2 })
				} else {
					v.sees("the outage", func() bool { return v.reports["orders"].Lost != 0 || v.lost != 0 })
					if r := v.reports["orders"]; v.ready || r.Ready || r.Elections > 0 || v.got["detail"] > 0 {
						t.Errorf("%s shows in an outage what was before somebody looked: %+v, ready %v, %+v", path, r, v.ready, v.detail)
					}
				}
				v.goes()
				time.Sleep(time.Minute)
			}
		})
	}
}

// A coordinator is asked only while its page is open, or the overview is.
func TestOverviewAsksNoMore(t *testing.T) {
	inEstate(t, page.Options{}, []string{"orders", "payments"}, nil, func(t *testing.T, e *estate) {
		candidate(t, e.of["orders"], "reports", "web-1")
		cost := func() (orders, payments int) {
			a, b := e.of["orders"].Requests(), e.of["payments"].Requests()
			time.Sleep(time.Minute)
			return e.of["orders"].Requests().Since(a).Of("page"), e.of["payments"].Requests().Since(b).Of("page")
		}
		if orders, payments := cost(); orders+payments > 0 {
			t.Errorf("without a page %d and %d requests are sent", orders, payments)
		}
		v := visitAt(t, e.Server, "/orders/events?show=reports")
		v.sees("the leader", func() bool { return v.detail.Leader != nil })
		if orders, payments := cost(); orders == 0 || payments > 0 {
			t.Errorf("with a page of orders %d requests are sent to it, and %d to payments", orders, payments)
		}
		v.goes()
		time.Sleep(time.Minute)
		var all []*visitor
		for range 20 {
			all = append(all, visitAt(t, e.Server, "/events"))
		}
		for _, v := range all {
			v.sees("all", func() bool { return v.reports["payments"].Ready })
		}
		if orders, payments := cost(); orders == 0 || payments == 0 || orders+payments > 2*60*6 {
			t.Errorf("with twenty overviews %d and %d requests are sent in a minute", orders, payments)
		}
	})
}

// What is done on a page is done to the elections of its coordinator alone, and the log says which that is.
func TestActsOnOneCoordinator(t *testing.T) {
	var log bytes.Buffer
	o := page.Options{Allow: []page.Act{page.Pause}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	inEstate(t, o, []string{"orders", "payments"}, []string{"reports"}, func(t *testing.T, e *estate) {
		const pause = `{"name":"reports","reason":"a new disk"}`
		if code, body := do(e.Server, "/pause", pause); code != 404 {
			t.Errorf("at the overview the answer is %d, %s", code, body)
		}
		if code, body := do(e.Server, "/payments/pause", pause); code != 204 {
			t.Fatalf("the answer is %d, %s", code, body)
		}
		for name, want := range map[string]bool{"orders": false, "payments": true} {
			b := e.of[name].Client("reader")
			defer b.Close()
			if now, _, err := elect.New(b, "reports", nil).Line(t.Context()); err != nil || now.Paused != want {
				t.Errorf("the election of %s is paused: %v, %v", name, now.Paused, err)
			}
		}
		if !strings.Contains(log.String(), "coordinator=payments act=pause") {
			t.Errorf("the log does not say where it was paused:\n%s", log.String())
		}
	})
}

// One coordinator that does not answer does not hold up what is done on the page of another.
func TestActsBesideOneThatHangs(t *testing.T) {
	inEstate(t, page.Options{Allow: []page.Act{page.Pause}}, []string{"orders", "payments"}, []string{"reports"}, func(t *testing.T, e *estate) {
		e.by["payments"].Cut()
		codes := make(chan int)
		for range 4 {
			go func() {
				code, _ := do(e.Server, "/payments/pause", `{"name":"reports","reason":"moved"}`)
				codes <- code
			}()
		}
		synctest.Wait()
		begin := time.Now()
		if code, body := do(e.Server, "/payments/pause", `{"name":"reports","reason":"moved"}`); code != 503 {
			t.Errorf("a fifth act there is answered with %d, %s", code, body)
		}
		if code, body := do(e.Server, "/orders/pause", `{"name":"reports","reason":"moved"}`); code != 204 || time.Since(begin) > time.Second {
			t.Errorf("an act on another coordinator is answered with %d, %s, after %v", code, body, time.Since(begin))
		}
		for range 4 {
			if code := <-codes; code == 204 {
				t.Error("an act was done to a coordinator that does not answer")
			}
		}
	})
}

// All pages together are served at most a hundred times, the overview among them.
func TestFewStreamsOfAll(t *testing.T) {
	inEstate(t, page.Options{}, []string{"orders", "payments"}, []string{"reports"}, func(t *testing.T, e *estate) {
		var all []*visitor
		for i := range 100 {
			v := visitAt(t, e.Server, []string{"/events", "/orders/events", "/payments/events"}[i%3])
			v.sees("something", func() bool { return v.ready || len(v.reports) > 0 })
			all = append(all, v)
		}
		for _, path := range []string{"/", "/events", "/orders/", "/orders/events", "/payments/events?show=reports"} {
			if code, text := answer(e.Server, endless(t, path)); code != 503 || !strings.Contains(text, "close one") {
				t.Errorf("%s is answered with %d, %.100s", path, code, text)
			}
		}
		all[0].goes()
		v := visitAt(t, e.Server, "/payments/events")
		v.sees("the list", func() bool { return v.ready })
	})
}

// Who has logged in at one page has at all, and wrong tokens count on all together. Without a token nothing is seen or done anywhere.
func TestOneLogin(t *testing.T) {
	const looks = "a-token-to-look-with"
	for _, base := range []string{"", "/tools/elections"} {
		o := page.Options{Token: token, LookToken: looks, BasePath: base, Allow: []page.Act{page.Pause}}
		inEstate(t, o, []string{"orders", "payments"}, []string{"reports"}, func(t *testing.T, e *estate) {
			pages := []string{base + "/", base + "/orders/", base + "/payments/"}
			for _, at := range pages {
				for _, path := range []string{"", "events", "timeline.svg?name=reports"} {
					if code, body := answer(e.Server, endless(t, at+path)); code != 401 || strings.Contains(body, "coordinators") {
						t.Errorf("%s without a token is answered with %d, %s", at+path, code, body)
					}
				}
				if code, _ := do(e.Server, at+"pause", `{"name":"reports","reason":"for fun"}`); code != 401 {
					t.Errorf("an act at %s without a token is answered with %d", at, code)
				}
			}
			login := func(at, given string) *http.Response {
				r := request(http.MethodPost, at, "token="+given)
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				r.Header.Set("Origin", "http://localhost")
				w := httptest.NewRecorder()
				e.ServeHTTP(w, r)
				return w.Result()
			}
			for given, act := range map[string]int{token: 204, looks: 403} {
				for _, at := range pages {
					in := login(at, given)
					c := in.Cookies()
					if in.StatusCode != 303 || in.Header.Get("Location") != "./" || len(c) != 1 || c[0].Path != base+"/" {
						t.Fatalf("the login at %s is answered with %d, %v", at, in.StatusCode, in.Header)
					}
					for _, other := range pages {
						r := request(http.MethodGet, other, "")
						r.AddCookie(c[0])
						if code, _ := answer(e.Server, r); code != 200 {
							t.Errorf("%s with the cookie of %s is answered with %d", other, at, code)
						}
					}
					r := request(http.MethodPost, base+"/payments/pause", `{"name":"reports","reason":"a new disk"}`)
					r.Header = http.Header{"Origin": {"http://localhost"}, "Content-Type": {"application/json"}, "Succession-Page": {"1"}}
					r.AddCookie(c[0])
					if code, body := answer(e.Server, r); code != act && code != 409 { // it is paused by then
						t.Errorf("an act with the cookie of %s is answered with %d, %s; want %d", at, code, body, act)
					}
				}
			}
			for i := range 20 {
				if code := login(pages[i%3], "wrong").StatusCode; code != 401 {
					t.Fatalf("wrong token %d is answered with %d", i+1, code)
				}
			}
			for _, at := range pages {
				if code := login(at, "wrong").StatusCode; code != 429 {
					t.Errorf("after twenty wrong tokens one more at %s is answered with %d", at, code)
				}
			}
		})
	}
}

// Each page is at its own path, and no path leads from one to another or beside them.
func TestPathsOfPages(t *testing.T) {
	for _, base := range []string{"", "/tools/elections"} {
		inEstate(t, page.Options{BasePath: base}, []string{"a", "a.b", "a-b", "index.html", "..."}, nil, func(t *testing.T, e *estate) {
			for path, want := range map[string]struct {
				code int
				has  string
			}{
				"/": {200, ">Coordinators<"}, "/a/": {200, `data-name="a"`}, "/a.b/": {200, `data-name="a.b"`}, "/a-b/": {200, `data-name="a-b"`}, "/index.html/": {200, `data-name="index.html"`}, "/.../": {200, `data-name="..."`},
				"/a": {307, ""}, "/...": {307, ""}, "/%61/": {200, `data-name="a"`},
				"/a/files/page.js": {200, ""}, "/files/overview.js": {200, ""}, "/files/stream.js": {200, ""}, "/a/healthz": {200, "ok"}, "/healthz": {200, "ok"},
				"/A/": {404, ""}, "/b/": {404, ""}, "/a//": {404, ""}, "//a/": {404, ""}, "/a/a/": {404, ""}, "/a/../a-b/": {404, ""}, "/a/%2e%2e/a-b/": {404, ""}, "/a/..": {404, ""}, "/a%2f..%2fa-b/": {404, ""}, "/a/./": {404, ""},
				"/a/files/../../": {404, ""}, "/a/files/..%2f..%2fguard.go": {404, ""}, "/timeline.svg": {404, ""}, "/pause": {404, ""}, "/a?x=/": {307, ""}, "/a;/": {404, ""}, "/a%00/": {404, ""},
			} {
				r := request(http.MethodGet, base+path, "")
				w := httptest.NewRecorder()
				e.ServeHTTP(w, r)
				if w.Code != want.code || !strings.Contains(w.Body.String(), want.has) {
					t.Errorf("%s: the answer is %d, %.300s; want %d with %q", base+path, w.Code, w.Body, want.code, want.has)
				}
				if to := w.Result().Header.Get("Location"); w.Code == 307 && to != strings.TrimPrefix(strings.TrimSuffix(path, "?x=/"), "/")+"/" {
					t.Errorf("%s leads to %q, which is not beside it", path, to)
				}
				if h := w.Result().Header.Get("Content-Security-Policy"); !strings.Contains(h, "default-src 'none'") {
					t.Errorf("%s has the policy %q", path, h)
				}
			}
			for target, host := range map[string]string{"/": "evil.example.com", "/a/": "evil.example.com", "/a/events": "evil.example.com"} {
				r := request(http.MethodGet, base+target, "")
				r.Host = host
				if code, _ := answer(e.Server, r); code != 421 {
					t.Errorf("%s for another host is answered with %d", target, code)
				}
			}
			for target, code := range map[string]int{"/": 200, "/a": 307, "/a/": 200, "/events": 403, "/a/events": 403} {
				r := request(http.MethodGet, base+target, "")
				r.Header.Set("Sec-Fetch-Site", "cross-site")
				r.Header.Set("Sec-Fetch-Mode", "navigate")
				if got, _ := answer(e.Server, r); got != code {
					t.Errorf("a link of another site to %s is answered with %d; want %d", target, got, code)
				}
			}
		})
	}
}

// Only what is safe in a path, and does not hide the overview, can be the name of a coordinator.
func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{
		"payments": true, "a.b_c-9": true, "...": true, "index.html": true,
		"": false, ".": false, "..": false, "a/b": false, "/": false, "a b": false, "a:b": false, "a%2f": false, "a\n": false, "ä": false, "a\u202eb": false, "<b>": false,
		"events": false, "files": false, "healthz": false, strings.Repeat("x", 256): false,
	} {
		if err := page.CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// The name and the URL of a coordinator are text.
func TestNameIsText(t *testing.T) {
	b := memory.New(nil).Client("page")
	defer b.Close()
	s := page.NewOverview([]page.Coordinator{{Name: "orders", URL: `etcd://"><script>alert(1)</script>`, Backend: b}}, page.Options{})
	defer s.Close()
	if code, body := answer(s, request(http.MethodGet, "/orders/", "")); code != 200 || strings.Contains(body, "<script>alert") {
		t.Errorf("the page is %d, %s", code, body)
	}
}

// Twenty coordinators, half of them out, are closed at once.
func TestManyCoordinators(t *testing.T) {
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("site-%02d", i))
	}
	inEstate(t, page.Options{}, names, nil, func(t *testing.T, e *estate) {
		for _, name := range names[:10] {
			e.by[name].Cut()
		}
		v := visitAt(t, e.Server, "/events")
		v.sees("all", func() bool {
			lost := 0
			for r := range maps.Values(v.reports) {
				if r.Lost != 0 {
					lost++
				} else if !r.Ready {
					return false
				}
			}
			return len(v.reports) == 20 && lost == 10
		})
		begin := time.Now()
		e.Close()
		if took := time.Since(begin); took > time.Second {
			t.Errorf("closing takes %v", took)
		}
	})
}
