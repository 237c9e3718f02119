// Package candidate is candidates of elections in a process of their own, as a program would be
// written with one library or another.
//
// A program that measures starts itself again by [Start], and calls [Main] first thing:
//
//	if candidate.Is(os.Args) {
//		os.Exit(candidate.Main(os.Args, nil))
//	}
//
// [Libraries] are what elects, those of Java and Python among them, whose processes are peers of
// coordtest. All speak the protocol of coordtest.Peer: a process says ready, is told to join, and
// says elected and lost from then on. Each join is one more candidate of the process, and leave
// has the one leave who leads. While a candidate leads it works: about every millisecond it asks
// its library, in the way that the library documents, whether it still leads, and acts if so; see
// the other files of this package. It is lost as of its last act. A candidate that has lost gives
// back what it still holds, as its library asks for, and stands again, as a service does; so does
// one whose attempt to be elected has failed.
//
// The processes of Go know more:
//
//	join X, leave X    the same in the election whose name ends with X, as then do the events
//	rotate             from now on each leader leaves at once, and joins again; nothing is said
//	count              asks for "count N": how often one was elected since
//	weigh              asks for "weighs" with the bytes in use of the heap and of the stacks, and the number of goroutines
package candidate
