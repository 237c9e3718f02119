// Package evidence judges what a run leaves behind, and nothing but that: the notes of the
// workers and of the faults, the writes of the workers, and what the store and the
// guarded records hold (packages worker, store and history).
//
// A chaos run is judged by [Evidence.Check], whose rules the package chaos lists. The
// rehearsal of a migration takes those of its parts that hold there.
package evidence
