// Package elect runs code on exactly one of many processes at a time.
//
// Candidates of an [Election] stand in a line that a coordinator keeps; the first
// one leads, each of the others waits for the one just in front of it, and when
// that one goes the next in line leads. One uninterrupted leadership is a [Term].
//
//	b, err := backend.Open(ctx, "zookeeper://h1:2181,h2:2181/app")
//	...
//	err = elect.New(b, "reports", nil).Run(ctx, func(ctx context.Context, t *elect.Term) error {
//		return sendReports(ctx, t.Token()) // ctx ends the moment we stop being leader
//	})
//
// # Run
//
// [Election.Run] is what most programs need. It campaigns, calls the function while
// it leads, and campaigns again when leadership was lost:
//
//   - the function returns while leading: Run resigns and returns its error. A function
//     that calls [Term.Resign] while leading has said the same: Run returns its error
//     when it has returned.
//   - leadership is lost: the function's context is cancelled with a [*LostError]
//     as its cause. Run waits for the function, drops its error, and joins again at
//     the end of the line.
//   - Run's own context ends: the function's context is cancelled; Run waits for
//     the function, resigns, and returns the cause of its context.
//   - something is wrong that does not pass by itself, such as [backend.ErrDenied],
//     [backend.ErrReset] or [backend.ErrSealed]: Run returns it, for somebody to act on.
//
// Run never resigns before the function has returned: until then somebody may
// still be at work. A function that does not heed its context therefore holds up
// Run. After a loss it does not hold up the election: the coordinator hands leadership on.
// After a request to resign, or the end of Run's context, the place stands, and nobody leads
// until the function returns. The log ([Options] Logger) says at once that the term has
// ended, and from time to time that its work goes on.
//
// [Election.Campaign] is the same with the loop left to the caller, who must
// resign every term that it has won.
//
// # When a term ends
//
// A term ends when it is resigned; when the coordinator says that the member or
// its session is gone, an operator's deletion included; when somebody asked for
// its end ([Election.AskToResign]); and in any case a margin before its deadline,
// the instant before which the coordinator cannot have given leadership to
// another. An ended term never revives. The end is a level, not an event: the
// term's context is cancelled, which cannot be missed, and [Term.Check] compares
// clocks at the moment of the call, so that it is right even where a timer fired
// late because the process was paused.
//
// # What it does not promise
//
// A process may be paused between a check and the write that follows it. No lock
// service can help there, but the resource that is written to can: give it
// [Term.Token], which grows from term to term, and let it refuse a write with a
// smaller token than it has seen. Writes to the coordinator itself are protected
// in this way by [Term.Put]. Deadlines assume that clock rates, not clocks, agree.
package elect
