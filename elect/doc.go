// Package elect runs code on at most one of many processes at a time.
//
// The candidates of an [Election] stand in a line that a coordinator keeps. The first
// one leads. Each of the others waits until the one just in front of it has gone. One
// leadership without interruption is a [Term].
//
//	b, err := succession.Open("zookeeper://h1:2181,h2:2181/app")
//	...
//	err = elect.New(b, "reports", nil).Run(ctx, func(ctx context.Context, t *elect.Term) error {
//		return sendReports(ctx, t.Token()) // ctx ends when this process must not lead any more
//	})
//
// Package backend has the glossary: coordinator, session, member, token, deadline, margin.
//
// # Run
//
// Most programs need [Election.Run] only. It campaigns, which is to join the line and to
// wait, and calls the function when this candidate leads. If leadership is lost, the
// function's context ends, with a [*LostError] as the cause; Run waits for the function and
// campaigns again.
//
// Run never resigns before the function has returned. A function that ignores its
// context therefore holds up Run. After a loss it holds up nobody else: the coordinator
// hands leadership on. After a request to resign, or the end of Run's context, its
// member stands, so nobody else leads until the function returns. The log ([Options]
// Logger) says at once that the term has ended, and then from time to time that the work
// goes on.
//
// A function that wants to give leadership away, and to stand in line again at the end, returns
// [ErrStepDown]. Other parts of the program see the present term with [Election.Term], or hear of
// each change with [Election.Listen].
//
// [Election.Campaign] is for programs with a loop of their own. They must resign every
// term that they get.
//
// # When a term ends
//
// A term ends when
//
//   - the leader resigns;
//   - the coordinator says that the leader's member or session has gone, also if an
//     operator has removed it;
//   - somebody has asked the leader to resign, or has paused the
//     election (package operate);
//   - the leader is not ready, and a candidate behind it may be ([Options] Ready);
//   - its deadline is no further away than the margin ([Options] Margin). The deadline
//     is the instant before which the coordinator cannot have made another the leader.
//
// A term that has ended stays ended. The end cannot be missed: the term's context is
// cancelled. [Term.Check] compares clocks at the moment of the call, so it is right even
// if the process was paused and the timer that cancels the context is late.
//
// # Who is to lead
//
// Leadership goes down the line. Four things can make another candidate lead than the next in line:
//
//   - Readiness. A candidate that is not ready ([Options] Ready) stands in line, and is passed
//     over. A leader that becomes unready hands over.
//   - Preference. Of the candidates that are ready, the one with the largest Priority leads. Of
//     those with the same Priority, one in the Site of the last leader does.
//   - A wish. An operator names who is to follow the present leader (operate.ResignOptions To).
//   - A pause. An operator closes the election, and nobody leads (package operate).
//
// None of them reorders the line, and none takes part in its safety. A candidate that comes first
// looks once at who stands behind it, before it leads. If one of them is better, it leaves the line
// and joins again at the end; a [trace.Yielded] event says so. One candidate is better than another if an
// operator wishes for it; or else if it alone of the two is ready; or else if its priority is
// larger; or else if it alone is in the site of the last leader. A better candidate that joins
// never disturbs a leader. So if the leader that resigns is the best of all, it leads again at
// once, unless it is asked to resign in favour of another.
//
// A candidate of another library knows nothing of this: it counts as ready, with priority 0, and
// it leads when it is first. A pause keeps it from leading too, but only from when the gate, a
// member that stands for ever, is at the head of the line.
//
// Where no candidate and no operator uses any of this, nothing is asked and nothing is written.
// Otherwise the election's header says so, and each candidate that comes first looks once more at
// the line.
//
// A candidate writes its readiness into a record below E.unready, beside the election E, each time
// that it changes. If E is longer than about 225 bytes, there is no such record. Observers then see
// no reason, and a candidate may give way to another that is not ready.
//
// # History
//
// With [Options] History, leaders write down who led when and why that ended, in a record
// beside the election. Package operate reads it. It is for people who ask what happened:
// nothing waits for it, and nothing depends on it.
//
// # What it does not promise
//
// A process may be paused between a check and the write after it. No lock service can
// prevent that write, but the resource can refuse it: give it [Term.Token] with each
// write, and let it refuse a token that is smaller than the largest it has seen.
// [Term.Put] does this for records in the coordinator.
//
// Deadlines assume that clocks run at the same rate. What the clocks show does not
// matter.
package elect
