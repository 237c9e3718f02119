package page

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// A guard decides who may see the page. It has three questions:
//
//   - Is the request meant for this server? A page of another site can have its own name point here
//     (DNS rebinding), and its requests then have that name as their Host. So Host must be an address
//     that this server is reached at, localhost on this machine, or a name that was given.
//   - Does a page of another site ask? A browser says so in Origin and in Sec-Fetch-Site. What changes
//     something also needs a header that other sites cannot send without being asked about first.
//   - Who asks? With a token, only those who have it.
type guard struct {
	hosts  []string // names that are given
	token  string   // "" is none
	cookie string   // the value of the cookie of those who have the token
}

// minToken is the shortest token, in bytes: too long to be guessed.
const minToken = 16

func newGuard(hosts []string, token string) *guard {
	return &guard{hosts: hosts, token: token, cookie: rand.Text()}
}

// cookieName differs from port to port, as cookies do not.
func cookieName(r *http.Request) string {
	port := "80"
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		_, port, _ = net.SplitHostPort(a.String())
	}
	return "succession-" + port
}

// meant fails if the request is not meant for this server.
func (g *guard) meant(r *http.Request) error {
	name := r.Host
	if h, _, err := net.SplitHostPort(name); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if slices.ContainsFunc(g.hosts, func(h string) bool { return strings.EqualFold(h, name) }) {
		return nil
	}
	var local netip.Addr
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if ap, err := netip.ParseAddrPort(a.String()); err == nil {
			local = ap.Addr().Unmap()
		}
	}
	if at, err := netip.ParseAddr(name); err == nil && (at.Unmap() == local || at.IsLoopback() && local.IsLoopback()) {
		return nil
	}
	if strings.EqualFold(name, "localhost") && local.IsLoopback() {
		return nil
	}
	return fmt.Errorf("this server is not called %q: open the page at the address that it listens on, or start it with --host %s", name, name)
}

// askedHere fails if a page of another site asks.
func (g *guard) askedHere(r *http.Request) error {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" &&
		!(r.Method == http.MethodGet && r.URL.Path == "/" && r.Header.Get("Sec-Fetch-Mode") == "navigate") { // a link may lead here
		return errors.New("a page of another site has asked")
	}
	origin := r.Header.Get("Origin")
	if origin == "" && r.Method == http.MethodGet {
		return nil
	}
	if origin != "http://"+r.Host && origin != "https://"+r.Host {
		return fmt.Errorf("the origin %q is not that of this page", origin)
	}
	return nil
}

// admits reports whether the request has the token, or none is needed.
func (g *guard) admits(r *http.Request) bool {
	if g.token == "" {
		return true
	}
	if given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && g.is(given) {
		return true
	}
	c, err := r.Cookie(cookieName(r))
	return err == nil && equal(c.Value, g.cookie)
}

// is reports whether that is the token.
func (g *guard) is(given string) bool { return g.token != "" && equal(given, g.token) }

// equal takes as long for equal strings as for others, whatever their lengths.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
