// Package linear records the calls and answers of a coordinator's clients while faults strike, and checks
// that they fit an order in which one call happens after the other (github.com/anishathalye/porcupine). It takes
// the harness by which the conformance suite runs, with its clients and faults:
//
//	all, err := linear.Record(ctx, harness, nil)
//	for _, h := range all {
//		err = errors.Join(err, h.Check())
//	}
//
// Three things run at the same time, by the same clients:
//
//   - Records are registers: each Get shows what is then there; a CompareAndSet or Delete at a
//     version is done if the record has it, and refused if it has not. A Delete at any version leaves no record. Records
//     are deleted and made anew all the time.
//   - The items of a queue are a set: clients take an item that was put, by Take and TryTake, until one has confirmed
//     it, and no client takes it afterwards. If a claim checks or confirms with success, it is the
//     newest of its item, with the largest token.
//   - A lock is a register with a token: each holder has a larger token than all before it. A holder checks, and
//     writes under the lock's guard, with success only until another client has got the lock.
//
// A call whose answer was lost may have taken effect at any later time, or never. A client whose session an operator has ended
// hears of it afterwards (assumption A4 of docs/safety.md), so what it believes to hold since before tells nothing.
//
// The order of items, and how soon something happens, are not checked here; the suite checks them.
package linear
