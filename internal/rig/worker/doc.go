// Package worker is a process that does what the README tells an application to do,
// and writes down everything that it did.
//
// It stands in the lines of one or several elections, on the backend that a URL names.
// While it leads an election, it writes again and again, in two ways:
//
//   - to a resource that fences (package store), just after [elect.Term.Check] and with the
//     term's token;
//   - to two records of the coordinator, by [elect.Term.Put]. One is a counter, which it
//     increments if the record still has the version that the worker knows (compare and set).
//     It overwrites the other, whatever that held.
//
// It resigns when it is told to, or when its tenure is over, and joins the line again.
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
// With -via A=B it reaches the server at A through B. It is for migrations: they identify
// coordinators by the addresses of their servers, so a URL must not name proxies instead.
//
// With -names A=B+C it knows the name A by the addresses B and C, and by DNS no other name. With -forgetful its driver is
// a faulty one, which reads what the URL names only once; with -heedless it is itself, and does not ask whether it
// leads.
//
// It reads commands, one a line, from its standard input: "resign" makes it resign from
// all elections that it leads. The end of the input, or SIGTERM, makes it resign, leave, close
// its backend, and exit. The exit code is 0; or 1 if something failed that somebody must see
// to; or 3 if the backend could not be closed, so that members may stand for a session time.
//
// # What it writes
//
// LOG.history.jsonl holds notes that package history reads: joined, won, check failed,
// resigned, left. The same lines appear on the standard output as they happen.
//
// LOG.acts holds, for each election, the last time that the worker was certain to lead
// ([ReadActs]). It is there even if the process was killed. A leader asks about every
// millisecond whether it leads. So the term that it notes is certain: it led from just before
// it asked and was first told so, until just before it asked and was last told so.
//
// LOG.ops.jsonl holds each write, noted before it was made and after ([ReadOps]).
//
// Times are of [Clock], which all processes of the machine share. Each process needs a LOG
// of its own. The log of package elect goes to the standard error.
package worker
