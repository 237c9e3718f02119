package wire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/succession-dev/succession/backend"
)

// If the connection breaks before the credentials are accepted, the link forgets the session:
// the library has never heard of it.
func TestWireForgetsUnauthenticatedSession(t *testing.T) {
	l := testLink(t)
	l.auth = func() (*Auth, error) { return &Auth{User: "alice", Password: "secret"}, nil }
	credentials := frame(xidAuth, opAuth, 0, "digest", "alice:secret")
	for _, session := range []int64{5, 6} {
		r := newRig(t, l)
		r.send(connectRequest(0))
		go func() {
			r.server.Write(connectResponse(session, 8*second))
			io.ReadFull(r.server, make([]byte, len(credentials)))
			if session == 5 {
				r.server.Close()
				return
			}
			r.server.Write(reply(xidAuth, 0, 0))
		}()
		_, err := io.ReadFull(r.client, make([]byte, len(connectResponse(session, 8*second))))
		if (err == nil) != (session == 6) {
			t.Errorf("session %d: greeted with %v", session, err)
		}
	}
	if session, _ := l.State(); session != 6 {
		t.Errorf("the link's session is %d, want 6", session)
	}
}

// Credentials are shown after the greeting, before the client may send anything else. If
// they are refused, the session ends and says so.
func TestWireAuthenticates(t *testing.T) {
	for code, want := range map[int]error{0: nil, -115: backend.ErrDenied} {
		l := testLink(t)
		l.auth = func() (*Auth, error) { return &Auth{User: "alice", Password: "secret"}, nil }
		r := newRig(t, l)
		r.send(connectRequest(0))
		served := make(chan []byte, 1)
		go func() {
			r.server.Write(connectResponse(5, 8*second))
			got := make([]byte, len(frame(xidAuth, opAuth, 0, "digest", "alice:secret")))
			io.ReadFull(r.server, got)
			r.server.Write(reply(xidAuth, code, 0))
			served <- got
		}()
		_, err := io.ReadFull(r.client, make([]byte, len(connectResponse(5, 8*second))))
		r.client.Close() // for a server that still waits
		if got := <-served; !bytes.Equal(got, frame(xidAuth, opAuth, 0, "digest", "alice:secret")) {
			t.Errorf("the server got %q", got)
		}
		if !errors.Is(err, want) || !errors.Is(l.Refused(), want) {
			t.Errorf("code %d: greeted with %v, refused with %v, want %v", code, err, l.Refused(), want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}
