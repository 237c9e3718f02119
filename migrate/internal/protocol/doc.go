// Package protocol decides what happens in the migration of an election from one
// coordinator, From, to another, To. It reads and writes nothing: each function takes the lines and
// records that the caller has read, and returns what to do. Package migrate says what the protocol
// is and why it is safe; the model in its tests explores every interleaving of these functions'
// decisions.
//
// [Route.Phase] says how far a migration is. [BeingMoved], [Route.Take] and [Route.Lead] decide
// for a process with both coordinators that waits, is first on From, or leads.
// [Route.Begin], [Route.Cutover], [Route.Finish] and [Route.Abort] decide for an operator:
// each returns the next [Request].
package protocol
