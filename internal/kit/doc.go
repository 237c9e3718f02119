// Package kit is what the drivers of coordinators have in common: the life of sessions.
// A driver on it is its recipe (how a member joins, who is in front, what a record is),
// its deadline rule, and its wire.
//
// # Sessions
//
// A backend has one [Sessions], which hands out the live session and opens one where
// there is none. All who ask meanwhile wait for the same opening. It goes on when they
// have gone, and takes as long as Connect allows. [Sessions.Close] ends the sessions of the backend, and
// waits until each of them has been released: not only the newest, as one that ended
// long ago may still stand at the coordinator.
//
// # A session
//
// A driver's session embeds a [Life], which makes Done, Err and Close of
// [backend.Session]. A life ends once, for one of three reasons: its driver calls
// [Life.End], it is closed, or [Rules] Over says that it is over. Then, in this order:
//
//  1. [Rules] Ending makes the deadline pass;
//  2. the context of the session ends, with the reason as its cause, and Done is
//     closed: calls fail from now on, and what runs for the session stops;
//  3. [Rules] Release has the coordinator end the session, in a goroutine of the
//     backend's. What the session joined stands until then.
//
// Over is asked at each call, so that nothing depends on how soon a timer fires.
//
// # Calls
//
// A method of the contract runs in [Call]. It fails at once under a session that has
// ended, binds the caller's context to the session, so that whatever waits is woken by
// the end of either, and wraps the error: "etcd: join reports: ...". What may be sent
// again after a lost answer goes through [Retry].
//
//	func (s *session) Leave(ctx context.Context, m backend.Member) error {
//		return s.Run(ctx, "leave", m.Line, func(ctx context.Context) error {
//			return s.delete(ctx, m)
//		})
//	}
//
// Package internal/kit/example is a whole driver on this, in 400 lines.
//
// The package imports no driver. Memory uses of it the errors alone: there the sessions
// live in virtual time, behind the lock of their coordinator, and own no goroutine.
package kit
