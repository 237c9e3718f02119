package etcd

import "strings"

// hints are what it means when no connection comes about, by what gRPC then says: it
// hands on what the operating system, crypto/tls and http2 say, in words alone.
var hints = []struct{ said, means string }{
	{"looked like an HTTP/1.1 header", "what answers there is an HTTP server and not etcd"},
	{"tls: no application protocol", "what answers there speaks TLS and is not etcd"},
	{"tls: first record does not look like a TLS handshake", "the server does not speak TLS"},
	{"authentication handshake failed: EOF", "the server does not speak TLS"},
	{"authentication handshake failed: read tcp", "the server does not speak TLS"},
	{"tls: certificate required", "the server wants a certificate of its clients"},
	{"error reading server preface: EOF", "the server hung up, as one does that wants TLS"},
	{"error reading server preface: read tcp", "the server hung up, as one does that wants TLS"},
	{"error reading server preface: connection reset", "the server hung up, as one does that wants TLS"},
	{"use of closed network connection", "something listens there and does not answer"},
	{"context deadline exceeded", "something listens there and does not answer"},
	{"i/o timeout", "nothing answers at that address"},
	{"connection refused", "no server listens there"},
}

// hint returns what err means, for the front of a message, or nothing.
func hint(err error) string {
	for _, h := range hints {
		if strings.Contains(err.Error(), h.said) {
			return h.means + ": "
		}
	}
	return ""
}
