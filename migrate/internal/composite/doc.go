// Package composite is a backend made of the backends of two coordinators, From and To,
// between which elections move; package migrate exports it. A session is one session with
// each coordinator, which are its parts.
//
// What an election joins is an [entry]: a member on From, from when it is first there one on
// To as well, and a member on To alone once the election has moved. An entry is always in
// one [state]. What to do next is decided by [protocol]; this package reads what that needs
// and does what it says. What can be led, waited for and written at the same moment, and
// what has to wait for what:
//
//   - Ahead, Leave and the cutover of one entry take turns.
//   - A guarded write and the seal take turns, so that a write that was acknowledged before
//     the seal is seen by who reads the record after it.
//   - An entry's state is guarded by the lock of its session: whether the session still
//     needs From depends on the states of all its entries.
package composite
