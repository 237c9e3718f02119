// Package store is a resource that fences: a folder to which the leaders of an
// election write, and which refuses the write of a leader that has been succeeded.
//
// It is what every application that needs certainty should write to, as small as it
// can be: [Store.Append] takes a write with the fencing token of its writer's term,
// and refuses it where a larger token has been seen. Many processes use one folder
// at a time; a lock of the kernel (flock(2)) makes the comparison and the write one
// step.
//
// Accepted and refused writes alike are logged, one JSON line each, in the order in
// which they were decided. The log is the resource and the proof at once: what the
// store has accepted is in it, with who wrote it, when, and under which token.
//
//	token    the largest token that a write has carried
//	log      all writes
//
// # What it does not promise
//
// A process that is stopped while it holds the lock, for some microseconds of each
// write, holds up everybody else's writes until it goes on. A process that is killed
// may leave a write in the log that nobody was told of, and a token without a write.
// Data survive the death of processes, not that of the machine.
package store
