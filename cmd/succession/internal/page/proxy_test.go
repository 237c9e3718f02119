package page_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/succession-dev/succession/cmd/succession/internal/page"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
)

// With a base path all is below it, and nothing beside it but /healthz. No address in what is served begins at the root, so that a proxy may
// take a path away, too.
func TestBasePath(t *testing.T) {
	s := server(t, page.Options{BasePath: "/tools/elections", Token: token})
	get := func(method, path, body string) *http.Response {
		r := request(method, path, body)
		r.Header.Set("Origin", "http://localhost")
		if body != "" {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		} else {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Result()
	}
	rooted := regexp.MustCompile(`(?:href|src|action)="/|(?:fetch|EventSource)\(["` + "`" + `]/`)
	for path, code := range map[string]int{
		"/": 404, "/files/page.js": 404, "/healthz": 200, "/tools": 404, "/tools/elections2/": 404, "/tools/elections//": 404, "/tools/elections//x": 404, "/tools/elections/../x": 404, "/tools/elections/%2e%2e/": 404,
		"/tools/elections": 307, "/tools/elections/": 200, "/tools/elections/healthz": 200, "/tools/elections/files/style.css": 200,
		"/tools/elections/files/page.js": 200, "/tools/elections/files/acts.js": 200, "/tools/elections/files/rows.js": 200,
	} {
		answer := get(http.MethodGet, path, "")
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != code {
			t.Errorf("%s: the answer is %d, %v; want %d", path, answer.StatusCode, err, code)
		}
		if at := rooted.Find(body); at != nil && code == 200 {
			t.Errorf("%s has %s, which is not below the base", path, at)
		}
		if to := answer.Header.Get("Location"); path == "/tools/elections" && to != path+"/" {
			t.Errorf("%s leads to %q", path, to)
		}
	}
	answer := get(http.MethodPost, "/tools/elections/", "token="+token)
	if c := answer.Cookies(); answer.StatusCode != 303 || answer.Header.Get("Location") != "./" || len(c) != 1 || c[0].Path != "/tools/elections/" {
		t.Errorf("the login is answered with %d, %v", answer.StatusCode, answer.Header)
	}
}

// Who has the token to look with sees all, and can do nothing: also not with the cookie that it buys.
func TestLookToken(t *testing.T) {
	const looks = "a-token-to-look-with"
	o := page.Options{Token: token, LookToken: looks, Allow: []page.Act{page.Resign}, Names: []string{"reports"}}
	inBubble(t, o, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		login := func(given string) *http.Cookie {
			r := request(http.MethodPost, "/", "token="+given)
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Origin", "http://localhost")
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code != 303 {
				t.Fatalf("the login with %s is answered with %d", given, w.Code)
			}
			return w.Result().Cookies()[0]
		}
		for _, given := range []struct {
			token     string
			act       int
			mayBeSeen string
		}{{token, 409, "resign"}, {looks, 403, ""}} {
			for _, by := range []string{"header", "cookie"} {
				as := func(r *http.Request) *http.Request {
					if by == "header" {
						r.Header.Set("Authorization", "Bearer "+given.token)
					} else {
						r.AddCookie(login(given.token))
					}
					return r
				}
				if code, body := answer(s, as(request(http.MethodGet, "/", ""))); code != 200 || !strings.Contains(body, `data-allow="`+given.mayBeSeen+`"`) {
					t.Errorf("%s in a %s: the answer is %d, %s", given.token, by, code, body)
				}
				r := as(request(http.MethodPost, "/resign", `{"name":"reports","token":"1"}`))
				for k, v := range map[string]string{"Origin": "http://localhost", "Content-Type": "application/json", "Succession-Page": "1"} {
					r.Header.Set(k, v)
				}
				if code, body := answer(s, r); code != given.act {
					t.Errorf("an act with %s in a %s: the answer is %d, %s; want %d", given.token, by, code, body, given.act)
				}
			}
		}
	})
}

// What is done is done in the name that the proxy says. Whoever reaches the port past the proxy cannot say who they are, with a
// cookie neither, and cannot act; nor can somebody who has the proxy pass a name on beside its own.
func TestUserHeader(t *testing.T) {
	var log bytes.Buffer
	o := page.Options{Token: token, UserHeader: "X-Remote-User", Allow: []page.Act{page.Pause}, By: "ops@web-1", Names: []string{"reports"}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	inBubble(t, o, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		r := request(http.MethodPost, "/", "token="+token)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://localhost")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		cookie := w.Result().Cookies()[0]
		asks := func(method, path, body, bearer string, cookie *http.Cookie, users ...string) (int, string) {
			r := request(method, path, body)
			for k, v := range map[string]string{"Origin": "http://localhost", "Content-Type": "application/json", "Succession-Page": "1"} {
				r.Header.Set(k, v)
			}
			if bearer != "" {
				r.Header.Set("Authorization", "Bearer "+bearer)
			}
			if cookie != nil {
				r.AddCookie(cookie)
			}
			r.Header["X-Remote-User"] = users
			return answer(s, r)
		}
		const pause = `{"name":"reports","reason":"a new disk"}`
		for what, tt := range map[string]struct {
			code   int
			bearer string
			cookie *http.Cookie
			users  []string
		}{
			"past the proxy, without a token":          {401, "", nil, []string{"cora"}},
			"past the proxy, with a token that is not": {401, "wrong", nil, []string{"cora"}},
			"past the proxy, with a cookie":            {403, "", cookie, []string{"cora"}},
			"by a proxy that says no name":             {403, token, nil, nil},
			"by a proxy that says an empty one":        {403, token, nil, []string{" "}},
			"by a proxy that passes another on":        {400, token, nil, []string{"admin", "cora"}},
			"with a name that looks like another":      {400, token, nil, []string{"cora\u202e"}},
			"with a name as long as a book":            {400, token, nil, []string{strings.Repeat("x", 201)}},
		} {
			if code, body := asks(http.MethodPost, "/pause", pause, tt.bearer, tt.cookie, tt.users...); code != tt.code {
				t.Errorf("%s: the answer is %d, %s; want %d", what, code, body, tt.code)
			}
		}
		if code, body := asks(http.MethodGet, "/", "", "", cookie, "cora"); code != 200 || strings.Contains(body, "cora") || !strings.Contains(body, `data-allow=""`) {
			t.Errorf("with a cookie alone the page is %d, %s", code, body)
		}
		if code, body := asks(http.MethodGet, "/", "", token, nil, "cora@example.com"); code != 200 || !strings.Contains(body, ">cora@example.com</p>") || !strings.Contains(body, `data-allow="pause"`) {
			t.Errorf("by the proxy the page is %d, %s", code, body)
		}
		if code, body := asks(http.MethodPost, "/pause", pause, token, nil, "cora@example.com"); code != 204 {
			t.Fatalf("by the proxy the answer is %d, %s", code, body)
		}
		b := c.Client("reader")
		defer b.Close()
		now, _, err := elect.New(b, "reports", nil).Line(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if p, paused := now.Gate, now.Paused; !paused || p.ID != "cora@example.com, on the page of ops@web-1" {
			t.Errorf("it was paused by %+v, %v", p, paused)
		}
		if !strings.Contains(log.String(), "user=cora@example.com") {
			t.Errorf("the log does not say who has paused it:\n%s", log.String())
		}
	})
}

// An id that has a character which changes the order of letters, or that shows nothing, is shown as the command prints it.
func TestHiddenCharacters(t *testing.T) {
	inBubble(t, page.Options{}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		candidate(t, c, "reports", "web-\u202e1\u200b")
		const want = `web-\u202e1\u200b`
		v := visit(t, s, "reports")
		v.sees("the id with what is hidden in it", func() bool {
			return v.rows["reports"].Who == want && v.detail.Leader != nil && v.detail.Leader.ID == want && v.detail.Terms[0].ID == want && v.detail.Tables[0].Rows[0][1] == want
		})
		if code, body := answer(s, request(http.MethodGet, "/timeline.svg?name=reports", "")); code != 200 || !strings.Contains(body, want) || strings.Contains(body, "\u202e") {
			t.Errorf("the picture is %d, %s", code, body)
		}
	})
}

// Whoever types wrong tokens at the form, by the proxy, holds up nobody else who comes by it: neither at the form, nor those for whom the
// proxy sends the right one.
func TestWrongTokensByProxy(t *testing.T) {
	inBubble(t, page.Options{Token: token, UserHeader: "X-Remote-User"}, func(t *testing.T, _ *memory.Coordinator, s *page.Server) {
		asks := func(method, body string) int {
			r := request(method, "/", body)
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Origin", "http://localhost")
			r.Header.Set("Authorization", "Bearer "+token)
			code, _ := answer(s, r)
			return code
		}
		for i := range 21 {
			if code, want := asks(http.MethodPost, "token=wrong"), 401+28*(i/20); code != want {
				t.Fatalf("wrong token %d is answered with %d; want %d", i+1, code, want)
			}
		}
		if code := asks(http.MethodPost, "token="+token); code != 303 {
			t.Errorf("the right one at the form is answered with %d", code)
		}
		if code := asks(http.MethodGet, ""); code != 200 {
			t.Errorf("by the proxy the answer is %d", code)
		}
	})
}

// Another page of the same host may have set a cookie of the same name, which the browser sends too.
func TestCookieOfAnotherPage(t *testing.T) {
	s := server(t, page.Options{Token: token, BasePath: "/elections"})
	r := request(http.MethodPost, "/elections/", "token="+token)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "http://localhost")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	mine := w.Result().Cookies()[0]
	other := &http.Cookie{Name: mine.Name, Value: "of-another-page"}
	for _, cookies := range [][]*http.Cookie{{mine, other}, {other, mine}} {
		r := request(http.MethodGet, "/elections/", "")
		for _, c := range cookies {
			r.AddCookie(c)
		}
		if code, _ := answer(s, r); code != 200 {
			t.Errorf("with %v the answer is %d", cookies, code)
		}
	}
}
