// Package connect is how every subcommand reaches its coordinator: it has the flags that
// name the coordinator and bound the wait for it, and says what is at the address when
// nobody answers as expected (probe).
package connect
