package consul

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/backend/kit/clock"
	"github.com/succession-dev/succession/internal/addresses"
)

// Names are names for tests, with the addresses that each has.
var Names sync.Map // string to []string

func init() {
	newDialer = func() *addresses.Dialer {
		d := addresses.New()
		system := d.Lookup
		d.Lookup = func(ctx context.Context, host string) ([]string, error) {
			if addrs, ok := Names.Load(host); ok {
				return slices.Clone(addrs.([]string)), nil
			}
			return system(ctx, host)
		}
		return d
	}
}

func unwrap(s backend.Session) *session { return s.(*kit.Adapter).Session.(*session) }

// SessionID returns the id of the session of Consul that a session's members are locked by.
func SessionID(s backend.Session) string { return unwrap(s).present().id }

// Renew sends a renewal, beside those that the session sends by itself.
func Renew(s backend.Session) error { return unwrap(s).renew(clock.Now()) }

// ReplayJoin sends again what Join sent for the member.
func ReplayJoin(ctx context.Context, s backend.Session, m backend.Member) error {
	_, err := unwrap(s).lock(ctx, unwrap(s).b.o.folder(m.Line)+m.Key, m.Value)
	return err
}

// LeaveTogether removes the members in one request. It reports which of them are known to have gone.
func LeaveTogether(ctx context.Context, s backend.Session, ms ...backend.Member) []bool {
	return unwrap(s).leaveTogether(ctx, ms)
}

// CountRequests counts all requests that b sends from now on. It must be called
// before the first.
func CountRequests(b *Backend) *atomic.Int64 {
	n := new(atomic.Int64)
	OnRequest(b, func(*http.Request) { n.Add(1) })
	return n
}

// OnRequest calls f with each request as it goes out. It must be called before the first
// one.
func OnRequest(b *Backend, f func(*http.Request)) {
	Tap(b, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		f(req)
		return next.RoundTrip(req)
	})
}

// Tap has f answer each request, by means of next or without. It must be called before
// the first.
func Tap(b *Backend, f func(req *http.Request, next http.RoundTripper) (*http.Response, error)) {
	for _, h := range b.c.https {
		t := h.Transport.(certainly).RoundTripper.(consistently)
		t.RoundTripper = tap{t.RoundTripper, f}
		h.Transport = certainly{t, "/v1/txn"}
	}
}

type tap struct {
	http.RoundTripper
	f func(*http.Request, http.RoundTripper) (*http.Response, error)
}

func (t tap) RoundTrip(req *http.Request) (*http.Response, error) { return t.f(req, t.RoundTripper) }

func (t tap) CloseIdleConnections() {
	t.RoundTripper.(interface{ CloseIdleConnections() }).CloseIdleConnections()
}

// Waits reports whether a call of WatchPlace waits for the member.
func Waits(s backend.Session, m backend.Member) bool {
	own := unwrap(s)
	own.mu.Lock()
	defer own.mu.Unlock()
	return len(own.waiters[own.b.o.folder(m.Line)+m.Key]) > 0
}

// MaxGhosts is how many ghosts make a session take another session of Consul.
const MaxGhosts = maxGhosts

// Abandon makes keys ghosts of the session.
func Abandon(s backend.Session, keys ...string) {
	for _, key := range keys {
		unwrap(s).abandon(key)
	}
}

// Remembered returns how many entries the maps of a session have.
func Remembered(s backend.Session) (n int) {
	own := unwrap(s)
	own.mu.Lock()
	defer own.mu.Unlock()
	for _, v := range []reflect.Value{reflect.ValueOf(own).Elem(), reflect.ValueOf(own.ghosts)} {
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() == reflect.Map {
				n += f.Len()
			}
		}
	}
	return n
}
