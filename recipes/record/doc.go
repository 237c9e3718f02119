// Package record keeps small values in the coordinator, with versions, so that many processes see
// the same one: configuration, names and addresses, how far some work has come.
//
//	limits := record.New(b, "config/limits", record.JSON[Limits]())
//	for e, err := range limits.Follow(ctx) { // at once, and then at each change
//		if err != nil {
//			return err
//		}
//		apply(e.Value)
//	}
//
// A [Value] is a process's handle on one record. Every write gives the record another
// [backend.Version]. A write that names a version succeeds only while the record still has it. So
// if two processes change a record at the same time, neither overwrites the other's change unseen:
// [Value.CompareAndSet], and [Value.Update], which tries again.
//
// A leader, or the holder of a lock, writes with [Value.SetAs]: once another can lead, the
// coordinator refuses the write, in the same atomic step, whatever clocks do.
//
// A record is small: at most [backend.MaxRecord] bytes, and often read rather than often written.
// Each follower costs the coordinator one watch. A value that changes many times a second is better
// read from time to time ([Value.Get]), or kept elsewhere. [List] returns all records below a name.
//
// The name of a record must not be that of an election, nor lie below it: E and E/x are the
// header and the members of election E. Names are otherwise free; see [backend.CheckName].
package record
