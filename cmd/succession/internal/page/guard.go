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
	"unicode/utf8"

	"github.com/succession-dev/succession/cmd/succession/internal/host"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
)

// A guard decides who may see the page. It has three questions:
//
//   - Is the request meant for this server? A page of another site can have its own name point here
//     (DNS rebinding), and its requests then have that name as their Host. So Host must be an address
//     that this server is reached at, localhost on this machine, or a name that was given.
//   - Does a page of another site ask? A browser says so in Origin and in Sec-Fetch-Site. What changes
//     something also needs a header that other sites cannot send without being asked about first.
//   - Who asks? With tokens, only those who have one.
type guard struct {
	hosts  []string // names that are given
	keys   []key    // none if no token is needed
	header string   // the one in which a proxy says who asks; "" is none

	mu    sync.Mutex
	wrong map[string]int // how many wrong tokens have come from each address since then
	since time.Time
}

// A key is what admits those who have its token.
type key struct {
	token  string
	cookie string // the value of the cookie of those who have given the token
	looks  bool   // it is for those who may only look
}

// A visitor is whoever has asked.
type visitor struct {
	looks bool   // may only look
	user  string // who that is, as the proxy says; "" if none has said so
}

const (
	// maxWrong is how many wrong tokens from an address are told to the log in each wrongSpan. A right one is taken all the same: all who come
	// by a proxy have its address, and a token is too long to be guessed.
	maxWrong  = 20
	wrongSpan = time.Minute
	// maxAddresses is how many addresses are counted apart.
	maxAddresses = 1000
)

// errSlowly refuses one wrong token too many.
var errSlowly = errors.New("that is not the token; too many wrong ones have come from your address")

// minToken is the shortest token, in bytes: too long to be guessed.
const minToken = 16

func newGuard(o Options) *guard {
	g := &guard{hosts: o.Hosts, header: o.UserHeader}
	for _, k := range []key{{token: o.Token}, {token: o.LookToken, looks: true}} {
		if k.token != "" {
			k.cookie = rand.Text()
			g.keys = append(g.keys, k)
		}
	}
	return g
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
		!(r.Method == http.MethodGet && (r.URL.Path == "/" || r.URL.Path == "") && r.Header.Get("Sec-Fetch-Mode") == "navigate") { // a link may lead here
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

// admits returns who asks. It fails if the request has no token, and one is needed.
//
// Only whoever sends a token with the request itself may say who asks: that is the proxy, whose token its users do not know. A
// cookie does not do, which a browser sends of itself, past the proxy too.
func (g *guard) admits(r *http.Request) (visitor, error) {
	if len(g.keys) == 0 {
		return visitor{}, nil
	}
	if scheme, given, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") { // RFC 9110, 11.1
		k, err := g.try(r, given)
		if err != nil {
			return visitor{}, err
		}
		user, err := g.named(r)
		return visitor{k.looks, user}, err
	}
	for _, c := range r.CookiesNamed(cookieName(r)) { // another page of this host may have set one, for a shorter or a longer path
		for _, k := range g.keys {
			if equal(c.Value, k.cookie) {
				return visitor{looks: k.looks}, nil
			}
		}
	}
	return visitor{}, errNoToken
}

// maxUser is how long the name of a user may be, in bytes.
const maxUser = 200

// named returns who asks, as the proxy says.
func (g *guard) named(r *http.Request) (string, error) {
	if g.header == "" {
		return "", nil
	}
	said := r.Header.Values(g.header)
	switch {
	case len(said) == 0:
		return "", nil
	case len(said) > 1: // the proxy has added its own to that of somebody else
		return "", fmt.Errorf("%w: %s is there %d times; the proxy has to replace what was sent to it", errUser, g.header, len(said))
	case len(said[0]) > maxUser || !utf8.ValidString(said[0]) || ui.Visible(said[0]) != said[0]:
		return "", fmt.Errorf("%w: %s has more than %d bytes, or characters that are not shown", errUser, g.header, maxUser)
	}
	return strings.TrimSpace(said[0]), nil
}

var (
	errNoToken = errors.New("the token is needed: log in on the page, or send it as Authorization: Bearer TOKEN")
	errWrong   = errors.New("that is not the token")
	errUser    = errors.New("it is not clear who asks")
)

// try returns the key whose token that is. It fails if there is none.
func (g *guard) try(r *http.Request, given string) (key, error) {
	for _, k := range g.keys {
		if equal(given, k.token) {
			return k, nil
		}
	}
	from, _, _ := net.SplitHostPort(r.RemoteAddr)
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := time.Now(); now.Sub(g.since) >= wrongSpan {
		g.wrong, g.since = make(map[string]int), now
	}
	if _, known := g.wrong[from]; !known && len(g.wrong) >= maxAddresses {
		from = "" // all others count as one
	}
	if g.wrong[from] >= maxWrong {
		return key{}, errSlowly
	}
	g.wrong[from]++
	return key{}, errWrong
}

// equal takes as long for equal strings as for others, whatever their lengths.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
