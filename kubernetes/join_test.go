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

// A join is given up while it is under way, and the API server then refuses to delete the member. The session ends: otherwise all would wait
// behind a member that its own process does not know of.
func TestUndoRefused(t *testing.T) {
	var version atomic.Int64
	joining, given := make(chan struct{}), make(chan struct{})
	b, err := New(fake(t, func(w http.ResponseWriter, r *http.Request) {
		member := strings.HasPrefix(path.Base(r.URL.Path), "member-")
		switch {
		case r.URL.Path == "/version":
			w.Write([]byte(`{"major":"1","minor":"37"}`))
		case r.Method == http.MethodDelete && member:
			w.WriteHeader(http.StatusForbidden)
			w.Write([]byte(`{"kind":"Status","code":403,"reason":"Forbidden","message":"leases is forbidden"}`))
		case r.Method == http.MethodDelete:
			deleted(w, r)
		case r.Method == http.MethodPost || r.Method == http.MethodPatch:
			var o object
			_ = json.NewDecoder(r.Body).Decode(&o)
			if r.Method == http.MethodPatch {
				o.Metadata.Name = path.Base(r.URL.Path)
			} else if strings.HasPrefix(o.Metadata.Name, "member-") {
				close(joining)
				<-given
			}
			o.Metadata.UID, o.Metadata.ResourceVersion = "u", strconv.FormatInt(version.Add(1), 10)
			_ = json.NewEncoder(w).Encode(o)
		case r.URL.Query().Has("watch"):
			<-r.Context().Done()
		default:
			w.Write([]byte(`{"metadata":{"resourceVersion":"` + strconv.FormatInt(version.Load(), 10) + `"},"items":[]}`))
		}
	}), &Options{Namespace: "default", TTL: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
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
		if err := s.Err(); !errors.Is(err, backend.ErrDenied) || !strings.Contains(err.Error(), "member-") {
			t.Errorf("the session has ended: %v\nwant ErrDenied, and the member", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("the session goes on, with a member that nobody knows of")
	}
}
