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
// elected and lost from then on. What counts as lost is what each library documents for it; see
// the files of this package. A candidate that has lost gives back what it still holds, as its
// library asks for, and stands again, as a service does; so does one whose attempt to be elected
// has failed.
package candidate
