// Package proxy stands between the clients of a coordinator and one of its servers, and
// does to their connections what networks do. It makes the network faults of a conformance
// harness, for any protocol over TCP.
//
// Each client of the harness goes through its own [Proxy], one for each server that it
// may talk to:
//
//	p, err := proxy.Start("127.0.0.1:2379", nil)
//	... connect to p.Addr() ...
//	p.Block(proxy.ToClient) // the server hears the client, but the client hears nothing
//	p.Heal()
//
// What a method does has taken effect when it returns, so tests need no pauses:
//
//   - Cut holds back all bytes, and Block those in one direction; Heal and Unblock let them
//     through, in order. Neither side notices more than silence, as when packets are lost.
//   - Delay slows one direction down.
//   - Sever resets a connection as soon as its client sends anything.
//   - Hide resets all connections and refuses new ones until Heal. Refuse only refuses, and
//     Reset only resets. Kill is Hide for good.
//   - HoldBack holds one request back until it is released, and lets all others pass.
//   - LoseAnswers lets a request take effect and loses its answer. CloseAfter breaks the connection
//     in the middle of a request or an answer.
//
// The method Network of [github.com/succession-dev/succession/conformance.Faults] wires these
// into a harness, in one call.
//
// # What it does not promise
//
// A proxy sees a stream of bytes, neither packets nor requests. While a network is cut, new
// connections are accepted and stay silent; on a real network they would not even be
// accepted. The proxy keeps in memory what it holds back, up to some megabytes for each
// connection; after that the sender's writes block.
package proxy
