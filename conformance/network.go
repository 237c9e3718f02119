package conformance

import (
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/proxy"
)

// Network fills in what can be done to a client's connections: Cut, Mute, Deafen, Sever,
// Hide and Kill. of returns the proxies through which the client, and nobody else, goes:
// one for each server that it may talk to. The proxies are the caller's to close, when
// the client is closed.
func (f *Faults) Network(of func(b backend.Backend) []*proxy.Proxy) {
	each := func(b backend.Backend, do func(*proxy.Proxy)) {
		for _, p := range of(b) {
			do(p)
		}
	}
	fault := func(do func(*proxy.Proxy)) func(backend.Backend) func() {
		return func(b backend.Backend) func() {
			each(b, do)
			return func() { each(b, (*proxy.Proxy).Heal) }
		}
	}
	f.Cut = fault((*proxy.Proxy).Cut)
	f.Mute = fault(func(p *proxy.Proxy) { p.Block(proxy.ToServer) })
	f.Deafen = fault(func(p *proxy.Proxy) { p.Block(proxy.ToClient) })
	f.Sever = fault((*proxy.Proxy).Sever)
	f.Hide = fault((*proxy.Proxy).Hide)
	f.Kill = func(b backend.Backend) { each(b, (*proxy.Proxy).Kill) }
}
