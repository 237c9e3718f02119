// Command gotest builds tests, runs them, and ends with one line that counts them all:
//
//	gotest LANE [-- LANE]... [--idle LANE]... [--then LIST] [--alone LIST] [--make NEEDS]... [--low NEEDS]... [--before NEEDS]... [--all LIST]
//
// A lane is a list of arguments 'DIR [-FLAG...] PACKAGE... [-FLAG...]'. The first word is the
// folder of a module. Flags before the packages are for go test, such as -race. Those after
// them are for the test programs, so that those of package testing begin with -test.
//
// The lanes run beside each other. Each runs its programs one at a time, in the order of its
// arguments. A lane after --idle runs on one processor and with the lowest priority, which Linux keeps to
// only with a session for each of its programs; see command. The
// programs after --then are for any lane that has ended, one at a time, and have the usual
// priority. Those after --alone run in the end, one at a time, when all others have ended but those of idle lanes, and those for
// which something is still being made; these begin when what runs alone has ended. What is left of idle lanes then has the usual
// priority, and any lane runs it.
//
// A test may say in its first line, by a call of package internal/rig/lane, that it waits in real time while others of
// its package do not (Real), that nothing else is to run then (Alone), or that the race detector costs more than it
// finds (Unraced). An argument runs the tests that say neither Real nor Alone, and, behind -race, not Unraced either. With the word
// @real it runs those that say Real, with @alone those that say Alone, and with @unraced those that say Unraced; packages
// without any are left out. A test that is not built with the
// race detector is Unraced by that. If no argument runs a test, the run fails before it begins, also if it is one of the
// packages after --all. An argument with -test.run runs what that names, whatever the tests say; each name in it must be
// that of a test in each of its packages.
//
// Test programs are built beside the tests, in the order in which the lanes want them, with
// less priority than theirs and with more than that of an idle lane.
//
// Each argument after --make is 'NAME COMMAND...': a command that builds a server, or installs packages, while tests run. The
// commands of one --make run one after the other, and those of several beside each other, with the priority of what is built,
// and those of --low with that of an idle lane. A word +NAME in a lane waits for the command of that name: before the
// packages, the build of the programs waits, and behind the packages, the programs do. Meanwhile the lane runs the next
// program that need not wait, or one after --then. The commands of --before are run as those of --make, with the usual
// priority, in this session, and until they have ended, only idle lanes run anything: a compiler would disturb what is judged
// by time, and be disturbed. If a command fails, the run fails, and so do the programs that wait for it. All others run.
//
// With --passed, gotest notes in the user's cache folder what passes. With --again it does so too, and leaves out what has
// passed before, on this commit or on an earlier one, and would do the same again. A command would if all files are as they were. A
// program would if its own contents are, what it has read of this repository, and all files that are neither Go nor Markdown, as
// servers read some. A program that looks for Go builds others, and counts as one that has read all files. The words behind either are the names of commands whose success depends on the files
// alone; others are not noted. Nor is a program in which a rule could not be judged, or a test was skipped for another reason
// than that the rule is impossible, not wired or waived. If a file is not as in the commit, gotest notes nothing, and says
// so.
//
// A workspace that the environment names in GOWORK holds for what is built, and not for programs and commands.
//
// It prints a line for each package, with how far the run is, the output of a test when it
// fails, and why a test was skipped, unless a rule of the conformance suite is impossible
// there. At the end it prints how long each package took, and how much of the processors, the
// slowest tests, with how long they took the last time, what was disturbed by other work of the
// machine, how many tests are left to ./test all, and once more the gist of what has failed. It
// exits with 1 when anything has failed, when nothing was tested, and when too much could not be judged.
//
// If it is interrupted or terminated, it ends what it has started, says so, and closes as usual. What was running then
// has neither passed nor failed.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

func main() {
	if len(os.Args) > 3 && os.Args[1] == "keep" {
		if err := keep(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 3 && os.Args[1] == "low" {
		if err := low(os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: gotest 'DIR [-FLAG...] PACKAGE... [-FLAG...]' ... [-- 'DIR ...' ...] [--idle 'DIR ...' ...] [--then 'DIR ...' ...] [--alone 'DIR ...' ...] [--make 'NAME COMMAND...' ...] [--low 'NAME COMMAND...' ...] [--before 'NAME COMMAND...' ...] [--all 'DIR PACKAGE...' ...] [--passed NAME... | --again NAME...]")
		os.Exit(2)
	}
	// What was ignored from the beginning stays so, as behind nohup.
	ends := slices.DeleteFunc([]os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}, signal.Ignored)
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	context.AfterFunc(ctx, stop) // the next one is not waited for
	total := newReport(newConsole(os.Stdout))
	if err := total.runAll(ctx, os.Args[1:], historyFile()); err != nil {
		total.problem(err.Error())
	}
	if !total.close() {
		os.Exit(1)
	}
}
