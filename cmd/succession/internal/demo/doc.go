// Package demo is the subcommand demo: some candidates stand in one line, and a table
// shows what each of them does.
package demo
