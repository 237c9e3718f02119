package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// A quiet server is an API server in this process. It does what it is asked for to objects without any conditions. Its watches tell of
// renewals of the session, unless it is deaf, and of nothing else.
type quietServer struct {
	mu      sync.Mutex
	version int
	deaf    bool
	refuses bool                      // to open watches
	lag     time.Duration             // after which a watch tells of a renewal
	records map[string]*object        // that lists show
	watches map[string]*io.PipeWriter // that are open, by selector
	opened  int                       // watches
	lists   []string                  // their selectors
}

func (q *quietServer) RoundTrip(req *http.Request) (*http.Response, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	answer := func(v any) (*http.Response, error) {
		b, err := json.Marshal(v)
		return &http.Response{StatusCode: http.StatusOK, Header: make(http.Header), Body: io.NopCloser(bytes.NewReader(b)), Request: req}, err
	}
	o := &object{Metadata: meta{Name: path.Base(req.URL.Path)}}
	selector := req.URL.Query().Get("labelSelector")
	switch {
	case req.URL.Path == "/version":
		return answer(map[string]string{"major": "1", "minor": "37"})
	case req.URL.Query().Has("watch") && q.refuses:
		return nil, errors.New("no watch now")
	case req.URL.Query().Has("watch"):
		q.opened++
		r, w := io.Pipe()
		q.watches[selector] = w
		context.AfterFunc(req.Context(), func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			if q.watches[selector] == w {
				delete(q.watches, selector)
			}
			w.CloseWithError(context.Cause(req.Context()))
		})
		return &http.Response{StatusCode: http.StatusOK, Header: make(http.Header), Body: r, Request: req}, nil
	case req.Method == http.MethodGet && selector != "":
		q.lists = append(q.lists, selector)
		items := []*object{}
		for name, o := range q.records {
			if strings.Contains(selector, name) {
				items = append(items, o)
			}
		}
		return answer(map[string]any{"metadata": map[string]string{"resourceVersion": strconv.Itoa(q.version)}, "items": items})
	case req.Method == http.MethodDelete:
		return answer(map[string]any{"kind": "Status", "status": "Success", "details": map[string]string{"name": o.Metadata.Name}})
	case req.Method == http.MethodPost:
		if err := json.NewDecoder(req.Body).Decode(o); err != nil {
			return nil, err
		}
	}
	q.version++
	o.Metadata.UID, o.Metadata.ResourceVersion = "uid-of-"+o.Metadata.Name, strconv.Itoa(q.version)
	if req.Method == http.MethodPatch && !q.deaf {
		for _, w := range q.watches {
			line, err := json.Marshal(map[string]any{"type": "MODIFIED", "object": o})
			if err != nil {
				return nil, err
			}
			time.AfterFunc(q.lag, func() { w.Write(append(line, '\n')) })
		}
	}
	return answer(o)
}

// open returns the selectors of the watches that are open, and how many were opened so far.
func (q *quietServer) open() (all []string, sent int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for selector := range q.watches {
		all = append(all, selector)
	}
	return all, q.opened
}

// Hundreds of records are told of by a few watches, each of which also tells of the session. If these tell of nothing, lists show what
// there is, and those look whom it concerns.
func TestFewWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, ttl = 250, 8 * time.Second
		q := &quietServer{version: 1, records: make(map[string]*object), watches: make(map[string]*io.PipeWriter)}
		b, err := New(&rest.Config{Host: "https://kubernetes", WrapTransport: func(http.RoundTripper) http.RoundTripper { return q }},
			&Options{Namespace: "default", TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if _, err := b.Session(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := b.sessions.Newest().(*session)
		name := func(i int) string { return fmt.Sprintf("record-%03d", i) }
		var waiters []*waiter
		var leave []func()
		q.mu.Lock()
		for i := range n {
			q.version++
			q.records[name(i)] = &object{Metadata: meta{Name: name(i), UID: "u", ResourceVersion: strconv.Itoa(q.version), Labels: map[string]string{recordLabel: "x"}}}
		}
		since := q.version
		// None of the watches is answered before all have entered.
		for i := range n {
			w := newWaiter(func(e event) bool { return !e.deleted && e.version() > int64(since) })
			_, end := s.hub.enter(w, []subject{{ofLabel, s.name}, {idLabel, name(i)}}, int64(since))
			waiters, leave = append(waiters, w), append(leave, end)
		}
		q.mu.Unlock()
		told := func() (all []int) {
			for i, w := range waiters {
				select {
				case <-w.c:
					all = append(all, i)
				default:
				}
			}
			return all
		}
		synctest.Wait()
		open, sent := q.open()
		if len(open) != 3 || sent > 7 {
			t.Errorf("%d records have %d watches, after %d requests", n, len(open), sent)
		}
		for _, selector := range open {
			if names := strings.Count(selector, ",") + 1; names > mostWatched+1 || !strings.Contains(selector, s.name) {
				t.Errorf("a watch of %d names, or without the session: %s", names, selector)
			}
		}
		for i := range n {
			if !slices.ContainsFunc(open, func(selector string) bool { return strings.Contains(selector, name(i)) }) {
				t.Errorf("no watch tells of %s", name(i))
			}
		}
		time.Sleep(2 * ttl)
		if _, now := q.open(); now > sent || len(told()) > 0 {
			t.Errorf("at rest %d watches were opened, or somebody was told", now-sent)
		}
		q.mu.Lock()
		q.deaf = true
		q.version++
		q.records[name(7)].Metadata.ResourceVersion = strconv.Itoa(q.version)
		q.lists = nil
		q.mu.Unlock()
		time.Sleep(ttl * 5 / 4)
		q.mu.Lock()
		q.deaf = false
		named := slices.DeleteFunc(slices.Clone(q.lists), func(selector string) bool { return !strings.Contains(selector, " in (") })
		q.mu.Unlock()
		if all := told(); !slices.Equal(all, []int{7}) {
			t.Errorf("after all watches were deaf, those who wait for %v look, want 7 alone", all)
		}
		if len(named) == 0 || len(named) > 4 {
			t.Errorf("that took %d lists", len(named))
		}
		for _, end := range leave {
			end()
		}
		time.Sleep(ttl)
		if open, _ := q.open(); len(open) != 1 {
			t.Errorf("when nobody waits %d watches are open, want that of the session", len(open))
		}
	})
}

// A watch that could not be opened for a while is not deaf: once it is open, it tells of the next renewal.
func TestWatchOpenedLate(t *testing.T) {
	const ttl = 8 * time.Second
	for from := ttl; from < ttl*5/4; from += ttl / 16 { // the session is renewed every quarter of the TTL
		for lasts := ttl / 8; lasts <= 2*ttl; lasts += ttl / 8 {
			synctest.Test(t, func(t *testing.T) { watchOpenedLate(t, ttl, from, lasts) })
		}
	}
}

func watchOpenedLate(t *testing.T, ttl, from, lasts time.Duration) {
	q := &quietServer{version: 1, watches: make(map[string]*io.PipeWriter), lag: ttl / 20}
	var said strings.Builder
	b, err := New(&rest.Config{Host: "https://kubernetes", WrapTransport: func(http.RoundTripper) http.RoundTripper { return q }},
		&Options{Namespace: "default", TTL: ttl, Logger: slog.New(slog.NewTextHandler(&said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Session(t.Context()); err != nil {
		t.Fatal(err)
	}
	refuse := func(refuses bool) {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.refuses = refuses
		for _, w := range q.watches {
			w.Close()
		}
		clear(q.watches)
	}
	time.Sleep(from)
	refuse(true)
	time.Sleep(lasts)
	refuse(false)
	time.Sleep(3 * ttl)
	if open, _ := q.open(); len(open) != 1 {
		t.Errorf("%d watches are open", len(open))
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	// It is said at a renewal, once that has lasted for three quarters of the TTL.
	all := said.String()
	late := strings.Contains(all, "cannot be opened")
	if late && lasts < ttl*3/4 || !late && lasts > ttl*5/4 || strings.Contains(all, "tells of nothing") {
		t.Errorf("from %v on no watch could be opened for %v; the log says:\n%s", from, lasts, all)
	}
}
