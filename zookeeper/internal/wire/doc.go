// Package wire is what lies between package zk, the client library of ZooKeeper, and its
// servers: connections that read along what passes over them (conn.go, frame.go), and the
// [Link], which binds the connections of one zk.Conn to one session and keeps the session's
// deadline (touches.go). It changes nothing of what the library and a server say to each
// other, except that it authenticates, refuses a second session, and asks for servers that
// have come as far as the session has seen.
package wire
