// Package wire lies between package zk, the client library of ZooKeeper, and the servers.
// It wraps the library's connections and reads what passes over them (conn.go, frame.go).
// A [Link] binds the connections of one zk.Conn to one session, and keeps the session's
// deadline (link.go, touches.go).
//
// It passes on what the library and a server say to each other, with three exceptions: it
// authenticates, it refuses a second session, and it asks only for servers that have come
// as far as the session has seen.
package wire
