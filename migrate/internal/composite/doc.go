// Package composite is a backend made of the backends of two coordinators, From and To,
// between which elections move; package migrate exports it. A session consists of two
// parts, a session with each coordinator.
//
// A join makes a candidacy. It is a member on From, with another one on To as soon as the first is
// first in line; once the election has moved, it is a member on To alone. A candidacy is always in
// one [state]. Package protocol decides what it does next; this package reads what the decision
// needs, and carries it out:
//
//   - Ahead, Leave and the cutover of one candidacy take turns.
//   - A guarded write and the seal take turns. So a read after the seal sees every write that was
//     acknowledged before. The next guarded write waits until the gate has gone.
//   - The lock of a session guards the states of its candidacies: whether the session still
//     needs From depends on all of them.
package composite
