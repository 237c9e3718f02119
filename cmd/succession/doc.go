// Command succession elects a leader among processes, at the shell.
//
//	succession run reports -- ./send-reports --hourly
//
// starts the program only while this process leads the election "reports", on
// this machine or, with --url, on the coordinator that the URL names. It is a thin layer over
// package elect, which says what is promised about leadership.
//
// This folder has the root and the small subcommands: some look at an election (leader,
// watch, line), some act on it (resign, fence); some are about records (get, set, follow,
// delete), queues (queue put, list) and groups (group list, watch). The others have folders
// of their own:
//
//	internal/run      run, lock, queue take, group join: a program runs while this process
//	                  leads, or holds something
//	internal/demo     demo: an election at work, in one terminal
//	internal/page     ui: a web page that shows all elections
//	internal/migrate  migrate: an election moves to another coordinator
//	internal/suite    conformance: the suite on a coordinator in use
//	internal/man      man: the manual pages
//	internal/connect  how all of them reach the coordinator
//	internal/ui       arguments, output, signals and exit codes
package main

//go:generate go test -run TestReference -update .
