// Package sqltest tries fence.SQL on real databases: SQLite in a file, and a PostgreSQL
// server that the tests start. It is a module of its own, so that users of package fence
// never see the drivers. It has tests and examples only.
//
// The server comes from Debian's package postgresql, or from PATH. It listens on a socket in a
// folder of its own, does not wait for the disk, and ends with the tests. If there is no server,
// the tests fail. They need Linux.
package sqltest
