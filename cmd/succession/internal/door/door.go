// Package door bounds what the connections to a server of this command cost the process: every user of the machine can open some, and
// the process may be a leader.
package door

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Most is how many connections are answered. There are as many again that hear why they are not, or are probes.
	Most = 200
	// headers is how long the headers of a request may be, in bytes; and patience how long they may take, and then the body.
	headers  = 16 << 10
	patience = 10 * time.Second
)

// Serve serves h at the listener, by way of a server whose other bounds the caller has set, until the server is closed. What comes on
// a connection too many is answered with the reason, but for the path of the probe: whoever takes all connections must not have the
// process restarted. What that path answers must cost no more than the reason does.
func Serve(s *http.Server, l net.Listener, reason, probe string) error {
	s.MaxHeaderBytes, s.ReadHeaderTimeout = headers, patience
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if g, ok := c.(*guest); ok && g.crowded {
			return context.WithValue(ctx, crowdedKey{}, true)
		}
		return ctx
	}
	h := s.Handler
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 { // package net/http waits for what a handler has not read, whatever the method
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(patience))
		}
		if r.Context().Value(crowdedKey{}) != nil {
			w.Header().Set("Connection", "close")
			if r.URL.Path != probe {
				http.Error(w, reason, http.StatusServiceUnavailable)
				return
			}
		}
		h.ServeHTTP(w, r)
	})
	return s.Serve(&door{Listener: l})
}

type crowdedKey struct{}

// A door is a listener that lets in Most at a time, and as many again that are crowded: they are only to be told so.
type door struct {
	net.Listener
	inside atomic.Int64
}

func (d *door) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		n := d.inside.Add(1)
		if n <= 2*Most {
			return &guest{Conn: c, door: d, crowded: n > Most}, nil
		}
		d.inside.Add(-1)
		_ = c.Close() // there is no room even to say so
	}
}

// A guest is a connection that a door has let in.
type guest struct {
	net.Conn
	door    *door
	crowded bool
	leaves  sync.Once
}

func (g *guest) Close() error {
	g.leaves.Do(func() { g.door.inside.Add(-1) })
	return g.Conn.Close()
}

// CloseWrite is what package net/http closes a connection with on which there is more than it has read: the client could not read the
// answer otherwise.
func (g *guest) CloseWrite() error {
	if c, ok := g.Conn.(*net.TCPConn); ok {
		return c.CloseWrite()
	}
	return nil
}
