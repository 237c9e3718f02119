package conformance

import (
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/proxy"
)

// Network sets the faults of a client's connections, Cut, Mute, Deafen, Sever, Hide and Kill, and
// Bytes. of returns the client's proxies, one for each server that it may talk to. No other
// client may use them. The caller closes them when the client is closed.
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
	f.Bytes = func(b backend.Backend) (n int64) {
		each(b, func(p *proxy.Proxy) {
			s := p.Stats()
			n += s.ToServer + s.ToClient
		})
		return n
	}
}
