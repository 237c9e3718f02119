// Package candidate is one candidate of an election, in a process of its own, as a program
// would be written with one library or another.
//
// A program that measures starts itself again with the arguments that [Arguments] returns, and
// calls [Main] first thing:
//
//	if candidate.Is(os.Args) {
//		os.Exit(candidate.Main(os.Args))
//	}
//
// The candidate speaks the protocol of coordtest.Peer: it says ready, is told to join, and says
// elected and lost from then on. While it leads it works: about every millisecond it asks its
// library, in the way that the library documents, whether it still leads, and acts if so; see
// the other files of this package. It is lost as of its last act. A candidate that has lost gives
// back what it still holds, as its library asks for, and stands again, as a service does; so does
// one whose attempt to be elected has failed.
package candidate
