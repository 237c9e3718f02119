// Package proxy stands between the clients of a coordinator and one of its servers, and
// does to their connections what networks do: it makes the faults of a conformance
// harness for everything that talks TCP.
//
// A client of the harness goes through a [Proxy] of its own, one for each server that it
// may talk to:
//
//	p, err := proxy.Start("127.0.0.1:2379", nil)
//	... connect to p.Addr() ...
//	p.Block(proxy.ToClient) // the server hears its client, who hears nothing
//	p.Heal()
//
// What a method does has taken effect when it returns, so that a test needs no pauses:
//
//   - Cut holds back everything, and Block one direction; Heal and Unblock let it through,
//     in order. Nobody is told anything, as when packets are lost.
//   - Delay makes one direction slow.
//   - Sever resets a connection as soon as its client sends anything.
//   - Hide resets all connections and refuses new ones until Heal, Refuse only refuses,
//     and Reset only resets. Kill is Hide for good.
//   - LoseAnswers has a request take effect and loses its answer; CloseAfter breaks off
//     in the middle of a request or an answer.
//
// The method Network of [github.com/succession-dev/succession/conformance.Faults] makes
// faults of these, in one call.
//
// # What it does not promise
//
// A proxy sees a stream of bytes, neither packets nor requests. Connections to a cut
// network are made, and stay silent, where a real one would not even be made. What is
// held back is kept in memory, up to some megabytes for each connection; then the sender
// feels it.
package proxy
