// Package sqltest tries fence.SQL on real databases: SQLite in a file, and a PostgreSQL
// server that the tests start. It is a module of its own, so that users of package fence
// never see the drivers. It has tests and examples only.
//
// The server is that of Debian's package postgresql, or whichever is in PATH. It listens on
// a socket in a folder of its own, writes nothing to the disk for certain, and ends with the
// tests. Where there is none the tests fail. They need Linux.
package sqltest
