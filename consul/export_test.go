package consul

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/succession-dev/succession/backend"
)

// SessionID returns the id of the session of Consul that a session's members are locked by.
func SessionID(s backend.Session) string { return s.(*session).present().id }

// ReplayJoin sends again what Join sent for the member.
func ReplayJoin(ctx context.Context, s backend.Session, m backend.Member) error {
	_, err := s.(*session).lock(ctx, s.(*session).b.o.folder(m.Line)+m.Key, m.Value)
	return err
}

// CountRequests counts all requests that b sends from now on. It must be called
// before the first.
func CountRequests(b *Backend) *atomic.Int64 {
	n := new(atomic.Int64)
	OnRequest(b, func(*http.Request) { n.Add(1) })
	return n
}

// OnRequest calls f with each request as it goes out. It must be called before the
// first.
func OnRequest(b *Backend, f func(*http.Request)) {
	for _, h := range b.c.https {
		t := h.Transport.(consistently)
		t.RoundTripper = tap{t.RoundTripper, f}
		h.Transport = t
	}
}

type tap struct {
	http.RoundTripper
	f func(*http.Request)
}

func (t tap) RoundTrip(req *http.Request) (*http.Response, error) {
	t.f(req)
	return t.RoundTripper.RoundTrip(req)
}

func (t tap) CloseIdleConnections() {
	t.RoundTripper.(interface{ CloseIdleConnections() }).CloseIdleConnections()
}
