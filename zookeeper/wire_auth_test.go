package zookeeper

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/succession-dev/succession/backend"
)

// Credentials are shown after the greeting and before the client may send anything
// else. Where they are refused, the session ends and says so.
func TestWireAuthenticates(t *testing.T) {
	for code, want := range map[int]error{0: nil, -115: backend.ErrDenied} {
		l := testLink(t)
		l.auth = &Digest{User: "alice", Password: "secret"}
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
		if !errors.Is(err, want) || !errors.Is(l.refused(), want) {
			t.Errorf("code %d: greeted with %v, refused with %v, want %v", code, err, l.refused(), want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}
