// Package kit holds what all drivers of coordinators have in common: the life of sessions.
// A driver that uses it consists of its recipe (how a member joins, who stands in front, what
// a record is), its deadline rule, and its wire.
//
// # Sessions
//
// A backend has one [Sessions], which returns the live session, or opens one if there is
// none. All callers that ask meanwhile wait for the same opening. It goes on even after they
// have given up. It asks the driver again and again, each time with more time, as long as what is wrong may pass,
// and lasts at most as long as Connect says ([Config]). [Sessions.Close] ends the sessions
// of the backend and waits until each of them has been released: not only the newest, because
// members of a session that ended long ago may still stand at the coordinator.
//
// # A session
//
// A driver's session embeds a [Life], which implements Done, Err and Close of
// [backend.Session]. A life ends once, for one of three reasons: its driver calls
// [Life.End], somebody closes it, or [Rules] Over says that it is over. Then, in this order:
//
//  1. [Rules] Ending makes the deadline pass;
//  2. the context of the session ends, with the reason as its cause, and Done is
//     closed: calls fail from now on, and what runs for the session stops;
//  3. [Rules] Release has the coordinator end the session, in a goroutine that belongs to the
//     backend. The members of the session stand until then.
//
// Over is asked at each call, so nothing depends on how soon a timer fires.
//
// # Calls
//
// Callers have a session in its [Adapter], so the driver's own methods of the contract contain
// its recipe and nothing else. The adapter fails a call at once if the session has ended, or if
// an argument is not allowed. It binds the caller's context to the session, so that the end of
// either wakes whatever waits. And it wraps the error: "etcd: join reports: ...". A request
// that may be sent again after a lost answer goes through [Retry].
//
// # Around it
//
// Package [github.com/succession-dev/succession/backend/kit/lease] is the deadline that a late answer cannot
// revive, package [github.com/succession-dev/succession/backend/kit/clock] measures time that
// counts suspension, and package [github.com/succession-dev/succession/backend/kit/backoff] makes
// the pauses between tries. Package [github.com/succession-dev/succession/backend/kit/example] is a
// complete driver on all of them, in 400 lines.
//
// The contract in package backend is what stays when versions change. This package and those below
// it may change with each minor version until 1.0, as new coordinators show what drivers have in
// common.
//
// The package imports no driver. Driver memory uses only its errors: there, sessions live in
// virtual time, behind the lock of their coordinator, and own no goroutine.
package kit
