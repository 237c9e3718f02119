package page_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/cmd/succession/internal/page"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
)

const token = "a-token-that-is-long"

var (
	loopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8070}
	outside  = &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 8070}
)

// answer returns the status code and the body of the answer.
func answer(s *page.Server, r *http.Request) (int, string) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	body, _ := io.ReadAll(w.Result().Body)
	return w.Code, string(body)
}

func server(t *testing.T, o page.Options) *page.Server {
	b := memory.New(nil).Client("page")
	s := page.New(b, o)
	t.Cleanup(func() {
		s.Close()
		b.Close()
	})
	return s
}

// Only requests that name this server as their host are answered.
func TestHost(t *testing.T) {
	s := server(t, page.Options{Hosts: []string{"elections.example.com"}})
	for _, c := range []struct {
		host string
		at   net.Addr
		code int
	}{
		{"localhost:8070", loopback, 200},
		{"127.0.0.1:8070", loopback, 200},
		{"127.0.0.1", loopback, 200},
		{"[::1]:8070", loopback, 200},
		{"LocalHost", loopback, 200},
		{"elections.example.com", loopback, 200},
		{"Elections.example.com:443", outside, 200},
		{"192.0.2.7:8070", outside, 200},
		{"192.0.2.8:8070", outside, 421},
		{"localhost:8070", outside, 421},
		{"127.0.0.1:8070", outside, 421},
		{"evil.example.com:8070", loopback, 421},
		{"localhost.evil.example.com", loopback, 421},
		{"127.0.0.1.evil.example.com", loopback, 421},
		{"", loopback, 421},
	} {
		r := request(http.MethodGet, "/", "")
		r.Host = c.host
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, c.at))
		if code, body := answer(s, r); code != c.code {
			t.Errorf("with the host %q at %v the answer is %d, %s; want %d", c.host, c.at, code, body, c.code)
		}
	}
}

// Pages of other sites cannot ask, nor have a browser ask.
func TestOtherSites(t *testing.T) {
	s := server(t, page.Options{Allow: []page.Act{page.Resign}, Names: []string{"reports"}})
	ok := map[string]string{"Origin": "http://localhost", "Content-Type": "application/json", "Succession-Page": "1", "Sec-Fetch-Site": "same-origin"}
	for what, c := range map[string]struct {
		change map[string]string
		code   int
	}{
		"as the page asks":   {nil, 409}, // nobody leads
		"another origin":     {map[string]string{"Origin": "http://evil.example.com"}, 403},
		"another port":       {map[string]string{"Origin": "http://localhost:1"}, 403},
		"the origin null":    {map[string]string{"Origin": "null"}, 403},
		"no origin":          {map[string]string{"Origin": ""}, 403},
		"no header":          {map[string]string{"Succession-Page": ""}, 403},
		"a form":             {map[string]string{"Content-Type": "text/plain"}, 403},
		"another site":       {map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		"a site of the same": {map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
	} {
		r := request(http.MethodPost, "/resign", `{"name":"reports","token":"1"}`)
		for k, v := range ok {
			r.Header.Set(k, v)
		}
		for k, v := range c.change {
			r.Header.Set(k, v)
			if v == "" {
				r.Header.Del(k)
			}
		}
		if code, body := answer(s, r); code != c.code {
			t.Errorf("%s: the answer is %d, %s; want %d", what, code, body, c.code)
		}
	}
	for path, code := range map[string]int{"/events": 403, "/timeline.svg?name=reports": 403, "/": 200} {
		r := request(http.MethodGet, path, "")
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Sec-Fetch-Mode", "navigate")
		if got, body := answer(s, r); got != code {
			t.Errorf("a link of another site to %s: the answer is %d, %s; want %d", path, got, body, code)
		}
	}
}

// Without the token nothing is shown; with it, or with the cookie that it buys, everything.
func TestToken(t *testing.T) {
	s := server(t, page.Options{Token: token, Allow: []page.Act{page.Resign}})
	for path, code := range map[string]int{"/": 401, "/events": 401, "/timeline.svg?name=reports": 401, "/files/style.css": 200} {
		if got, body := answer(s, request(http.MethodGet, path, "")); got != code || strings.Contains(body, "id=\"elections\"") {
			t.Errorf("%s without a token: the answer is %d, %s; want %d", path, got, body, code)
		}
	}
	r := request(http.MethodPost, "/resign", `{"name":"reports","token":"1"}`)
	r.Header.Set("Origin", "http://localhost")
	if code, _ := answer(s, r); code != 401 {
		t.Errorf("an act without a token is answered with %d", code)
	}
	for given, code := range map[string]int{token: 200, token + "x": 401, "": 401} {
		r := request(http.MethodGet, "/", "")
		r.Header.Set("Authorization", "Bearer "+given)
		if got, _ := answer(s, r); got != code {
			t.Errorf("with the token %q the answer is %d; want %d", given, got, code)
		}
	}
	login := func(given, origin string) *httptest.ResponseRecorder {
		r := request(http.MethodPost, "/", "token="+given)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", origin)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	if w := login("wrong", "http://localhost"); w.Code != 401 || len(w.Result().Cookies()) != 0 {
		t.Errorf("a wrong token: the answer is %d, with the cookies %v", w.Code, w.Result().Cookies())
	}
	if w := login(token, "http://evil.example.com"); w.Code != 403 {
		t.Errorf("a login from another site is answered with %d", w.Code)
	}
	w := login(token, "http://localhost")
	cookies := w.Result().Cookies()
	if w.Code != http.StatusSeeOther || len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode || strings.Contains(cookies[0].Value, token) {
		t.Fatalf("the login is answered with %d, and the cookies %v", w.Code, cookies)
	}
	r = request(http.MethodGet, "/", "")
	r.AddCookie(cookies[0])
	if code, _ := answer(s, r); code != 200 {
		t.Errorf("with the cookie the answer is %d", code)
	}
	cookies[0].Value += "x"
	r = request(http.MethodGet, "/", "")
	r.AddCookie(cookies[0])
	if code, _ := answer(s, r); code != 401 {
		t.Errorf("with another cookie the answer is %d", code)
	}
	if w := login(token, "https://localhost"); !w.Result().Cookies()[0].Secure {
		t.Error("behind TLS the cookie is not kept to TLS")
	}
}

// What is not allowed is refused, with the reason; what is allowed is done only to the term that was shown.
func TestResign(t *testing.T) {
	act := func(s *page.Server, name, token string) (int, string) {
		return do(s, "/resign", `{"name":"`+name+`","token":"`+token+`"}`)
	}
	inBubble(t, page.Options{}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		candidate(t, c, "reports", "web-1")
		if code, body := act(s, "reports", "1"); code != 403 || !strings.Contains(body, "--allow resign") {
			t.Errorf("the answer is %d, %s", code, body)
		}
		time.Sleep(time.Minute)
		if l, err := elect.New(c.Client("b"), "reports", nil).Leader(t.Context()); err != nil || l.ID != "web-1" {
			t.Errorf("the leader is %v, %v", l, err)
		}
	})
	inBubble(t, page.Options{Allow: []page.Act{page.Resign}}, func(t *testing.T, c *memory.Coordinator, s *page.Server) {
		candidate(t, c, "reports", "web-1")
		candidate(t, c, "reports", "web-2")
		v := visit(t, s, "reports")
		v.sees("the leader", func() bool { return v.detail.Leader != nil })
		if code, body := act(s, "reports", "7"); code != 409 {
			t.Errorf("asked to end another term, the answer is %d, %s", code, body)
		}
		if code, body := act(s, "../reports", "1"); code != 400 {
			t.Errorf("with a name that cannot be, the answer is %d, %s", code, body)
		}
		if code, body := act(s, "reports", "1"); code != 204 {
			t.Errorf("the answer is %d, %s", code, body)
		}
		v.sees("the next leader", func() bool { return v.detail.Leader != nil && v.detail.Leader.ID == "web-2" })
	})
}

// What the page is made of has a type, and a policy that allows no other scripts.
func TestPolicy(t *testing.T) {
	s := server(t, page.Options{URL: `etcd://"><script>alert(1)</script>`})
	for path, kind := range map[string]string{"/": "text/html", "/files/page.js": "text/javascript", "/files/rows.js": "text/javascript", "/files/style.css": "text/css", "/files/icon.svg": "image/svg+xml"} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, request(http.MethodGet, path, ""))
		h := w.Result().Header
		if w.Code != 200 || !strings.HasPrefix(h.Get("Content-Type"), kind) {
			t.Errorf("%s: %d, %s", path, w.Code, h.Get("Content-Type"))
		}
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(h.Get("Content-Security-Policy"), want) {
				t.Errorf("%s: the policy %q lacks %s", path, h.Get("Content-Security-Policy"), want)
			}
		}
		if strings.Contains(w.Body.String(), "<script>") {
			t.Errorf("%s has markup of others", path)
		}
	}
	for _, path := range []string{"/files/", "/files/index.html", "/files/../index.html", "/no", "/resign"} {
		if code, _ := answer(s, request(http.MethodGet, path, "")); code == 200 {
			t.Errorf("%s is answered", path)
		}
	}
}

// Wrong tokens are told to the log, but no more than twenty from one address in a minute. Whoever has the right one is not held up by
// somebody else at that address, which may be that of a proxy: a token is too long to be guessed.
func TestWrongTokens(t *testing.T) {
	var log bytes.Buffer
	o := page.Options{Token: token, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	inBubble(t, o, func(t *testing.T, _ *memory.Coordinator, s *page.Server) {
		asks := func(from, given string) int {
			r := request(http.MethodGet, "/", "")
			r.RemoteAddr = from
			r.Header.Set("Authorization", "Bearer "+given)
			r.Header.Set("Accept", "text/plain")
			code, _ := answer(s, r)
			return code
		}
		const here, there = "10.0.0.7:1000", "10.0.0.8:1000"
		for i := range 20 {
			if code := asks(fmt.Sprintf("10.0.0.7:%d", 1000+i), "wrong"); code != 401 {
				t.Fatalf("wrong token %d is answered with %d", i+1, code)
			}
		}
		if n := strings.Count(log.String(), "a wrong token was given"); n != 20 || strings.Contains(log.String(), "token=wrong") {
			t.Errorf("the log tells of %d wrong tokens:\n%s", n, log.String())
		}
		if code := asks(here, "wrong"); code != 429 {
			t.Errorf("one more is answered with %d", code)
		}
		if n := strings.Count(log.String(), "a wrong token was given"); n != 20 {
			t.Errorf("the log tells of %d wrong tokens", n)
		}
		if code := asks(here, token); code != 200 {
			t.Errorf("the right one is answered with %d", code)
		}
		if code := asks(there, "wrong"); code != 401 {
			t.Errorf("from another address a wrong one is answered with %d", code)
		}
		time.Sleep(time.Minute)
		if code := asks(here, "wrong"); code != 401 {
			t.Errorf("a minute later a wrong one is answered with %d", code)
		}
	})
}

// Whoever watches the server asks without a token, and HEAD is answered like GET, but for the stream. The name of the scheme may be in any case.
func TestWatched(t *testing.T) {
	inBubble(t, page.Options{Token: "0123456789abcdef"}, func(t *testing.T, _ *memory.Coordinator, s *page.Server) {
		for _, tt := range []struct {
			method, path, authorization string
			want                        int
		}{
			{"GET", "/healthz", "", 200},
			{"HEAD", "/healthz", "", 200},
			{"HEAD", "/", "", 401},
			{"HEAD", "/", "bearer 0123456789abcdef", 200},
			{"GET", "/", "BEARER 0123456789abcdef", 200},
			{"HEAD", "/events", "Bearer 0123456789abcdef", 405},
		} {
			r := request(tt.method, tt.path, "")
			if tt.authorization != "" {
				r.Header.Set("Authorization", tt.authorization)
			}
			if code, body := answer(s, r); code != tt.want {
				t.Errorf("%s %s with %q: the answer is %d, %s; want %d", tt.method, tt.path, tt.authorization, code, body, tt.want)
			}
		}
	})
}
