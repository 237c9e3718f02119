package fence_test

import (
	"bufio"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/fence"
)

// request returns a request with the given headers Succession-Token.
func request(method, path string, tokens ...string) *http.Request {
	r := httptest.NewRequest(method, path, nil)
	for _, token := range tokens {
		r.Header.Add("succession-token", token)
	}
	return r
}

func TestHandlerAnswers(t *testing.T) {
	var served int
	c := new(fence.Checker)
	h := fence.Handler(c, func(r *http.Request) string { return r.URL.Path }, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
	for i, s := range []struct {
		method, path string
		tokens       []string
		code         int
		largest      string // in the response
	}{
		{"PUT", "/accounts", []string{"7"}, 200, ""},
		{"PUT", "/accounts", []string{"7"}, 200, ""},
		{"PUT", "/accounts", nil, 428, ""},
		{"POST", "/accounts", nil, 428, ""},
		{"DELETE", "/accounts", nil, 428, ""},
		{"PATCH", "/accounts", nil, 428, ""},
		{"FROB", "/accounts", nil, 428, ""},
		{"get", "/accounts", nil, 428, ""}, // methods have upper and lower case
		{"GET", "/accounts", nil, 200, ""},
		{"HEAD", "/accounts", nil, 200, ""},
		{"OPTIONS", "/accounts", nil, 200, ""},
		{"TRACE", "/accounts", nil, 200, ""},
		{"PUT", "/accounts", []string{"5"}, 412, "7"},
		{"GET", "/accounts", []string{"5"}, 412, "7"}, // it shows a token
		{"GET", "/accounts", []string{"9"}, 200, ""},
		{"PUT", "/accounts", []string{"7"}, 412, "9"},
		{"PUT", "/letters", []string{"7"}, 200, ""},
		{"PUT", "/accounts", []string{"9", "9"}, 400, ""},
		{"PUT", "/accounts", []string{""}, 400, ""},
		{"PUT", "/accounts", []string{"0"}, 400, ""},
		{"PUT", "/accounts", []string{"9, 9"}, 400, ""},
		{"GET", "/accounts", []string{"nine"}, 400, ""},
	} {
		before := served
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request(s.method, s.path, s.tokens...))
		if w.Code != s.code || w.Header().Get(fence.Header) != s.largest {
			t.Errorf("step %d: %s %s with token %q: %d, largest %q; want %d, %q", i, s.method, s.path, s.tokens, w.Code, w.Header().Get(fence.Header), s.code, s.largest)
		}
		if ran := served > before; ran != (s.code == 200) {
			t.Errorf("step %d: served: %t", i, ran)
		}
	}
}

// Without a function all requests concern one resource.
func TestHandlerOfOneResource(t *testing.T) {
	h := fence.Handler(new(fence.Checker), nil, http.NotFoundHandler())
	for _, s := range []struct {
		path, token string
		code        int
	}{{"/a", "7", 404}, {"/b", "5", 412}} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request("PUT", s.path, s.token))
		if w.Code != s.code {
			t.Errorf("%s: %d, want %d", s.path, w.Code, s.code)
		}
	}
}

// What runs for an old token is told to end, and what comes with a larger one waits for it.
func TestHandlerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events []string
		end := make(chan struct{})
		h := fence.Handler(new(fence.Checker), nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "DELETE" {
				<-r.Context().Done()
				events = append(events, fmt.Sprint("told: ", context.Cause(r.Context())))
				<-end
				events = append(events, "old ends")
				return
			}
			events = append(events, "new runs")
		}))
		go h.ServeHTTP(httptest.NewRecorder(), request("DELETE", "/", "5"))
		synctest.Wait()
		go h.ServeHTTP(httptest.NewRecorder(), request("PUT", "/", "7"))
		synctest.Wait()
		close(end)
		synctest.Wait()
		if got, want := strings.Join(events, "; "), "told: stale token 5: 7 has been seen; old ends; new runs"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// The process of a leader was paused in the middle of a request. It must not hold up the
// next leader.
func TestHandlerStopsReading(t *testing.T) {
	reading := make(chan struct{})
	read := make(chan error, 1)
	h := fence.Handler(new(fence.Checker), nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "PUT" {
			if _, err := io.ReadFull(r.Body, make([]byte, 3)); err != nil {
				t.Error(err)
			}
			close(reading)
			_, err := io.ReadAll(r.Body)
			read <- err
		}
	}))
	server := httptest.NewServer(h)
	defer server.Close()

	paused, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer paused.Close()
	fmt.Fprintf(paused, "PUT / HTTP/1.1\r\nHost: accounts\r\nSuccession-Token: 5\r\nContent-Length: 10\r\n\r\nhal")
	<-reading

	r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(fence.Header, "7")
	resp, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("the next leader gets %s", resp.Status)
	}
	if err := <-read; err == nil {
		t.Error("half a request was read to its end")
	}
	if _, err := http.ReadResponse(bufio.NewReader(paused), nil); err != nil {
		t.Errorf("the paused one gets no answer: %v", err)
	}
}

// slowWriter is a response writer whose SetReadDeadline takes until it is told to return.
type slowWriter struct {
	http.ResponseWriter
	begun, end chan struct{}
}

func (w slowWriter) SetReadDeadline(time.Time) error {
	close(w.begun)
	<-w.end
	return nil
}

// The next request of a connection has its own deadlines. So none is set any more when the
// handler has returned.
func TestHandlerSetsNoDeadlineLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(fence.Checker)
		w := slowWriter{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
		h := fence.Handler(c, nil, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-w.begun }))
		returned := false
		go func() {
			h.ServeHTTP(w, request("PUT", "/", "5"))
			returned = true
		}()
		synctest.Wait()
		go c.Do(t.Context(), "", 7, nil)
		synctest.Wait()
		if returned {
			t.Error("the handler has returned, and a deadline is still to be set")
		}
		close(w.end)
		synctest.Wait()
		if !returned {
			t.Error("the handler has not returned")
		}
	})
}

func TestHandlerThatCannotKeep(t *testing.T) {
	c := &fence.Checker{Keep: func(context.Context, string, uint64) error { return errors.New("open /var/lib/secret: no space") }}
	w := httptest.NewRecorder()
	fence.Handler(c, nil, http.NotFoundHandler()).ServeHTTP(w, request("PUT", "/", "7"))
	if w.Code != 500 || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestError(t *testing.T) {
	_, missing := fence.RequestToken(request("PUT", "/"))
	_, invalid := fence.RequestToken(request("PUT", "/", "x"))
	for _, s := range []struct {
		err     error
		code    int
		largest string
		body    string
	}{
		{fmt.Errorf("save: %w", &fence.StaleError{Token: 5, Largest: 7}), 412, "7", "stale token 5: 7 has been seen"},
		{fence.Updated(driver.RowsAffected(0), "accounts", 5), 412, "0", `stale token 5 for "accounts": a larger one has been seen`},
		{fmt.Errorf("save: %w", fence.ErrStale), 412, "0", "save: stale token"},
		{missing, 428, "", "request header Succession-Token"},
		{invalid, 400, "", `invalid token "x"`},
		{errors.New("pq: connection refused"), 500, "", "Internal Server Error"},
	} {
		w := httptest.NewRecorder()
		fence.Error(w, s.err)
		if w.Code != s.code || w.Header().Get(fence.Header) != s.largest || !strings.Contains(w.Body.String(), s.body) {
			t.Errorf("%v: %d, largest %q, %s", s.err, w.Code, w.Header().Get(fence.Header), w.Body)
		}
		if err := fence.Refused(w.Result()); (err != nil) != (s.code == 412) {
			t.Errorf("%v: its sender is told %v", s.err, err)
		}
		if s.code == 500 && strings.Contains(w.Body.String(), "pq") {
			t.Errorf("%v: the response says %s", s.err, w.Body)
		}
	}
}

// Whatever the headers are, a write runs with one token that is a number, and with no other.
func FuzzHandler(f *testing.F) {
	for _, s := range append(notTokens, "7", "9", "11") {
		f.Add(s, "", false)
		f.Add(s, "9", true)
	}
	f.Fuzz(func(t *testing.T, first, second string, both bool) {
		c := new(fence.Checker)
		c.Restore(map[string]uint64{"": 9})
		served := false
		h := fence.Handler(c, nil, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served = true }))
		r := request("PUT", "/", first)
		if both {
			r.Header.Add(fence.Header, second)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		token, err := fence.ParseToken(first)
		want := http.StatusOK
		switch {
		case both || err != nil:
			want = http.StatusBadRequest
		case token < 9:
			want = http.StatusPreconditionFailed
		}
		if w.Code != want || served != (want == http.StatusOK) {
			t.Errorf("%q: %d, served: %t; want %d", r.Header[fence.Header], w.Code, served, want)
		}
	})
}
