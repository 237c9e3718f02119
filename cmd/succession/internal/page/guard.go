package page

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/succession-dev/succession/cmd/succession/internal/host"
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

	mu    sync.Mutex
	wrong map[string]int // how many wrong tokens each address has given since then
	since time.Time
}

const (
	// maxWrong is how many wrong tokens an address may give in each wrongSpan. None is looked at after that.
	maxWrong  = 20
	wrongSpan = time.Minute
	// maxAddresses is how many addresses are counted apart.
	maxAddresses = 1000
)

// errSlowly refuses a token that was not looked at.
var errSlowly = errors.New("too many wrong tokens have come from your address; wait for a minute")

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
	name := host.Asked(r)
	if host.IsHere(r) || slices.ContainsFunc(g.hosts, func(h string) bool { return strings.EqualFold(h, name) }) {
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
	if origin == "" && looksOnly(r) {
		return nil
	}
	if origin != "http://"+r.Host && origin != "https://"+r.Host {
		return fmt.Errorf("the origin %q is not that of this page", origin)
	}
	return nil
}

// looksOnly reports whether the request changes nothing.
func looksOnly(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead
}

// admits fails if the request has not the token, and one is needed.
func (g *guard) admits(r *http.Request) error {
	if g.token == "" {
		return nil
	}
	if c, err := r.Cookie(cookieName(r)); err == nil && equal(c.Value, g.cookie) {
		return nil
	}
	if scheme, given, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") { // RFC 9110, 11.1
		return g.try(r, given)
	}
	return errNoToken
}

var (
	errNoToken = errors.New("the token is needed: log in at /, or send it as Authorization: Bearer TOKEN")
	errWrong   = errors.New("that is not the token")
)

// try fails if that is not the token, or if the address that it comes from has given too many wrong ones.
func (g *guard) try(r *http.Request, given string) error {
	from, _, _ := net.SplitHostPort(r.RemoteAddr)
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := time.Now(); now.Sub(g.since) >= wrongSpan {
		g.wrong, g.since = make(map[string]int), now
	}
	if _, known := g.wrong[from]; !known && len(g.wrong) >= maxAddresses {
		from = "" // all others count as one
	}
	switch {
	case g.wrong[from] >= maxWrong:
		return errSlowly
	case g.token != "" && equal(given, g.token):
		return nil
	}
	g.wrong[from]++
	return errWrong
}

// equal takes as long for equal strings as for others, whatever their lengths.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
