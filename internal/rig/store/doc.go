// Package store is a resource that fences: a folder to which the leaders of an election
// write. It refuses the writes of a leader once a later leader has written.
//
// It is the smallest example of what an application should write to if it must be certain
// that no late write of an earlier leader counts. [Store.Append] takes a write with the
// fencing token of the writer's term, and refuses it if the store has seen a larger token.
// Many processes use one folder at a time; a lock of the kernel (flock(2)) makes the
// comparison and the write one step.
//
// The store logs accepted and refused writes alike, one JSON line each, in the order in
// which they were decided. The log is both the resource and the proof: it says of each write
// who wrote it, when, and with which token.
//
//	token    the largest token that a write has carried
//	log      all writes
//
// # What it does not promise
//
// A writer holds the lock for some microseconds of each write. If its process is stopped in
// that time, all other writes wait until it goes on. A process that is killed may leave a
// write in the log that nobody was told of, or a token without a write. Data survive the death
// of processes, but not a crash of the machine.
package store
