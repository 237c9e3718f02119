// Package evidence judges a run by what it leaves behind, and by nothing else: the notes of
// workers and faults, the writes of the workers, and what the store and the guarded records
// hold in the end (packages history, worker and store).
//
// [Evidence.Check] judges a chaos run; package chaos lists its rules. The rehearsal of a
// migration uses the parts of Check that also hold there.
package evidence
