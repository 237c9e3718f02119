package postgres

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/logs"
)

const (
	defaultTTL     = 10 * time.Second
	defaultConnect = 4 * time.Second
	minTTL         = 100 * time.Millisecond
	maxTTL         = time.Hour

	// closeBound is the longest time that Backend.Close waits for the server.
	closeBound = 2 * time.Second
)

// Options are the settings of a [Backend]. The zero value and nil are the defaults.
type Options struct {
	// TTL is the session time: if other sessions have not seen a session's heartbeats for that long
	// plus a twentieth, they end it. It is from 100 ms to an hour. 0 means 10 s.
	TTL time.Duration

	// Schema is the schema in which everything is kept: at most 24 lower-case letters, digits and
	// underscores. All candidates of a line must use the same schema. Empty means "succession".
	Schema string

	// ConnectTimeout bounds the opening of a session. 0 means 4 s, so that a wrong address is
	// reported within 5 s.
	ConnectTimeout time.Duration

	// Logger gets the log messages. nil passes warnings on to [slog.Default], and discards the rest.
	Logger *slog.Logger
}

// filled checks o and returns a copy with the defaults filled in.
func (o *Options) filled() (*Options, error) {
	var f Options
	if o != nil {
		f = *o
	}
	f.TTL = cmp.Or(f.TTL, defaultTTL)
	f.Schema = cmp.Or(f.Schema, DefaultSchema)
	f.ConnectTimeout = cmp.Or(f.ConnectTimeout, defaultConnect)
	f.Logger = logs.Or(f.Logger)
	switch {
	case f.TTL < minTTL || f.TTL > maxTTL:
		return nil, fmt.Errorf("%w: TTL %v is not between %v and %v", backend.ErrInvalid, f.TTL, minTTL, maxTTL)
	case f.ConnectTimeout < 0:
		return nil, fmt.Errorf("%w: connect timeout %v is negative", backend.ErrInvalid, f.ConnectTimeout)
	}
	return &f, checkSchema(f.Schema)
}

// backoff returns the pauses between attempts, which are short compared with the TTL.
func (o *Options) backoff() backoff.Backoff {
	return backoff.Backoff{Min: o.TTL / 100, Max: o.TTL / 10}
}

// attempt bounds a request that may be sent again.
func (o *Options) attempt() time.Duration { return o.TTL / 3 }
