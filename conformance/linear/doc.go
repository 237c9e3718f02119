// Package linear records what clients of a coordinator do and are told while faults strike, and proves
// that it fits an order in which one thing happens after the other (github.com/anishathalye/porcupine). It takes the
// harness by which the conformance suite runs, with its clients and faults:
//
//	all, err := linear.Record(ctx, harness, nil)
//	for _, h := range all {
//		err = errors.Join(err, h.Check())
//	}
//
// Three things run at the same time, by the same clients:
//
//   - Records are registers: each Get shows what is then there; a CompareAndSet or Delete at a version is done if
//     the record has it, and refused if it has not. Records are deleted and made anew all the time.
//   - The items of a queue are a set: an item that was put is taken until somebody has confirmed it, and by
//     nobody afterwards. A claim that checks, or confirms, is the newest of its item, and has the largest token.
//   - A lock is a register with a token: whoever gets it has a larger token than all before; whoever holds it checks,
//     and writes under its guard, only as long as nobody else has got it.
//
// A call whose answer was lost may have taken effect at any later time, or never.
//
// It does not look at the order of items, nor at how soon something happens: that is what the suite is for.
package linear
