package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
)

// little returns a session at a server that creates, changes and deletes what it is asked to, keeps nothing, and tells of nothing. answer,
// if it returns true, has answered a request instead.
func little(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, o *object) bool) *session {
	t.Helper()
	var version atomic.Int64
	b, err := New(fake(t, func(w http.ResponseWriter, r *http.Request) {
		var o object
		_ = json.NewDecoder(r.Body).Decode(&o)
		if r.Method != http.MethodPost {
			o.Metadata.Name = path.Base(r.URL.Path)
		}
		switch {
		case answer(w, r, &o):
		case r.URL.Path == "/version":
			w.Write([]byte(`{"major":"1","minor":"37"}`))
		case r.Method == http.MethodDelete:
			deleted(w, r)
		case r.Method == http.MethodPost || r.Method == http.MethodPatch:
			o.Metadata.UID, o.Metadata.ResourceVersion = "u", strconv.FormatInt(version.Add(1), 10)
			_ = json.NewEncoder(w).Encode(o)
		case r.URL.Query().Has("watch"):
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			w.Write([]byte(`{"metadata":{"resourceVersion":"` + strconv.FormatInt(version.Load(), 10) + `"},"items":[]}`))
		}
	}), &Options{Namespace: "default", TTL: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	if _, err = b.Session(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b.sessions.Newest().(*session)
}

// A join is given up while it is under way, and the API server then refuses to delete the member. The session ends: otherwise all would wait
// behind a member that its own process does not know of.
func TestUndoRefused(t *testing.T) {
	joining, given := make(chan struct{}), make(chan struct{})
	s := little(t, func(w http.ResponseWriter, r *http.Request, o *object) bool {
		switch member := strings.HasPrefix(o.Metadata.Name, "member-"); {
		case member && r.Method == http.MethodPost:
			close(joining)
			<-given
		case member && r.Method == http.MethodDelete:
			w.WriteHeader(http.StatusForbidden)
			w.Write([]byte(`{"kind":"Status","code":403,"reason":"Forbidden","message":"leases is forbidden"}`))
			return true
		}
		return false
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-joining
		cancel()
	}()
	if _, err := s.Join(ctx, "e", "x", ""); !errors.Is(err, context.Canceled) {
		t.Fatalf("a join that is given up: %v", err)
	}
	close(given)
	select {
	case <-s.Done():
		if err := s.Err(); !errors.Is(err, backend.ErrSessionEnded) || !strings.Contains(err.Error(), "member-") || !strings.Contains(err.Error(), backend.ErrDenied.Error()) {
			t.Errorf("the session has ended: %v\nwant ErrDenied, and the member", err)
		}
	case <-time.After(time.Minute):
		t.Error("the session goes on, with a member that nobody knows of")
	}
}

// A watch tells of nothing before the version at which it was opened. Who comes to it with an older look, looks again.
func TestLateToAWatch(t *testing.T) {
	s := little(t, func(http.ResponseWriter, *http.Request, *object) bool { return false })
	for _, tt := range []struct {
		since  int64
		missed bool
	}{{96, false}, {90, true}, {96, false}, {97, false}} {
		missed, leave := s.hub.enter(newWaiter(func(event) bool { return true }), []subject{{ofLabel, "session-x"}}, tt.since)
		defer leave()
		if missed != tt.missed {
			t.Errorf("who has seen all up to %d has missed something: %t", tt.since, missed)
		}
	}
}

// After one of ours, whose session time says nothing about how often client-go's candidates try, a lock that somebody has cleared is seen
// unchanged for as long as after a holder that nobody knows.
func TestClearedAfterOneOfOurs(t *testing.T) {
	s := little(t, func(http.ResponseWriter, *http.Request, *object) bool { return false })
	ours := &object{Metadata: meta{ResourceVersion: "5", Annotations: map[string]string{holderNote: s.b.holds("e", "member-x")}}, Spec: spec{HolderIdentity: "member-x", LeaseDurationSeconds: 6}}
	if d := s.see("e", ours); d > 0 {
		t.Errorf("one of ours that has gone is waited for, for %v", d)
	}
	if d := s.see("e", &object{Metadata: meta{ResourceVersion: "6"}}); d < givenUnknown*9/10 {
		t.Errorf("a lock that was cleared is taken after %v, want %v", d, givenUnknown)
	}
}
