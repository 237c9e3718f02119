// Package host says for which host a request is meant.
//
// A page of another site can have its own name point at an address of this machine (DNS rebinding). A browser then takes what
// is served here for a part of that site, which can read it. But its requests have that name as their Host.
package host

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Asked returns the name or address that a request is meant for, without the port.
func Asked(r *http.Request) string {
	name := r.Host
	if h, _, err := net.SplitHostPort(name); err == nil {
		name = h
	}
	return strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
}

// Local returns the address of this machine that a request has come to. It is not valid if that is not known.
func Local(r *http.Request) netip.Addr {
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if ap, err := netip.ParseAddrPort(a.String()); err == nil {
			return ap.Addr().Unmap()
		}
	}
	return netip.Addr{}
}

// IsHere reports whether a request is meant for the address that it has come to: it names that, or localhost or any
// other loopback address if it has come to a loopback address.
func IsHere(r *http.Request) bool {
	name, local := Asked(r), Local(r)
	if at, err := netip.ParseAddr(name); err == nil {
		return at.Unmap() == local || at.IsLoopback() && local.IsLoopback()
	}
	return strings.EqualFold(name, "localhost") && local.IsLoopback()
}
