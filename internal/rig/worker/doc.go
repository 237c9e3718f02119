// Package worker is a process that does what the README tells an application to do,
// and writes down everything that it did.
//
// It stands in the lines of one or several elections, on the backend that a URL names.
// While it leads one, it writes again and again, in two ways:
//
//   - to a resource that fences, a folder of package store, just after [elect.Term.Check]
//     and with the term's token;
//   - to two records of the coordinator, by [elect.Term.Put]: it counts one up from
//     the version that it knows (compare and set), and sets the other whatever it was.
//
// It resigns when it is told to or when its tenure is over, and stands in line again.
//
// # Running it
//
// [Main] is the whole process, for a program that executes itself:
//
//	if len(os.Args) > 1 && os.Args[1] == "worker" {
//		os.Exit(worker.Main(os.Args[2:], os.Stdin))
//	}
//
// and, from the outside,
//
//	worker -url zookeeper://h1:2181/app -id c1 -elections a,b -store DIR -log DIR/c1.1 -origin NS
//
// With -via A=B it reaches the server at A by way of B. A migration knows its coordinators
// by the addresses of their servers, so that proxies cannot stand in the URL.
//
// It takes commands, one a line, on its standard input: "resign" makes it give up
// what it leads. The end of the input, or SIGTERM, makes it resign, leave, close its
// backend, and exit: 0, or 1 where something needs somebody to act, or 3 where
// closing the backend failed, so that members may stand for a session time.
//
// # What it writes
//
// LOG.history.jsonl is what package history reads: joined, won, check failed, resigned,
// left. The same lines appear on the standard output as they happen. A leader asks about
// every millisecond whether it leads, and what it notes of its term is certain: it won
// before the first time that it was told so, and led until before the last. LOG.acts has
// the last time ([ReadActs]), also where the process was killed.
// LOG.ops.jsonl has each write, before it was made and after ([ReadOps]). Times are of
// [Clock], which all processes of the machine share. A process that is started anew
// needs another LOG. What package elect logs goes to the standard error.
package worker
