package example

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/backend/kit/clock"
)

// maxAnswer is the longest answer that is read: another program that answers in the server's place
// must not use up the memory of this process.
const maxAnswer = 32 << 20

var errEnded = errors.New("the server does not know the session")

// refusals are the errors for the server's statuses.
var refusals = map[int]error{
	http.StatusForbidden:          fmt.Errorf("%w: another session joined the member", backend.ErrDenied),
	http.StatusNotFound:           backend.ErrNotMember,
	http.StatusPreconditionFailed: backend.ErrVersion,
	http.StatusGone:               errEnded,
	http.StatusMisdirectedRequest: fmt.Errorf("%w: raise the fence of each election, and restart this process", backend.ErrReset),
}

// lost reports whether err leaves open what became of the request.
func lost(err error) bool { return errors.Is(err, backend.ErrUnavailable) }

// A mode is how a request of a session is sent.
type mode int

const (
	repeat mode = iota // sent again until it is answered
	wait               // like repeat, but the server answers only when something has happened
	once               // sent once, because it must not be done twice
)

// do does one operation of the server for the session.
func (s *session) do(ctx context.Context, how mode, op string, q request) (answer, error) {
	limit := map[mode]time.Duration{repeat: s.b.ttl / 3, wait: 24 * time.Hour, once: s.b.ttl}[how]
	if how == once {
		return s.send(ctx, limit, op, q)
	}
	return kit.Retry(ctx, s.b.pause(), lost, func(ctx context.Context) (answer, error) {
		return s.send(ctx, limit, op, q)
	})
}

// send sends one request of the session once. Its answer moves the deadline.
func (s *session) send(ctx context.Context, limit time.Duration, op string, q request) (answer, error) {
	q.Log, q.Session = s.log, s.id
	sent := clock.Now()
	a, err := s.b.send(ctx, limit, op, q)
	switch {
	case errors.Is(err, errEnded), errors.Is(err, backend.ErrReset):
		s.End(err)
	case err == nil:
		s.lease.Extend(sent, s.b.ttl)
	}
	if ended := s.Alive(); ended != nil {
		return answer{}, ended
	}
	return a, err
}

// send sends one request once, and waits for its answer until limit has passed. If ctx has
// ended, the error is the cause of ctx.
func (b *Backend) send(ctx context.Context, limit time.Duration, op string, q request) (a answer, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: no answer within %v", backend.ErrUnavailable, limit))
	defer cancel()
	body, _ := json.Marshal(q) // every request can be marshalled
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+op, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	status := 0
	resp, err := b.client.Do(r)
	if err == nil {
		status = resp.StatusCode
		body, err = io.ReadAll(http.MaxBytesReader(nil, resp.Body, maxAnswer))
		resp.Body.Close()
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return a, context.Cause(ctx)
	case err != nil:
		return a, fmt.Errorf("%w: %w", backend.ErrUnavailable, err)
	case status == http.StatusOK:
		return a, json.Unmarshal(body, &a)
	case refusals[status] != nil:
		return a, refusals[status]
	}
	return a, fmt.Errorf("the server answers %s with status %d", op, status)
}
