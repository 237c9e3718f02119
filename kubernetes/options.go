package kubernetes

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/logs"
)

const (
	defaultTTL     = 10 * time.Second
	defaultConnect = 4 * time.Second
	minTTL         = time.Second
	maxTTL         = time.Hour

	// closeBound is the longest time that Backend.Close waits for the API server.
	closeBound = 2 * time.Second
)

// Options are the settings of a [Backend]. The zero value and nil are the defaults.
type Options struct {
	// Namespace is where everything is kept. Empty means that of the pod; outside of pods it must be set. [Open] also knows the one of a
	// kubeconfig's context.
	Namespace string

	// Prefix begins the names of all elections and records. Those who are to stand in one line use the same. It may be empty.
	Prefix string

	// As is another library whose candidates may lead, too: [ClientGo], or empty for none. All who stand in one line say the same. Beside
	// client-go, TTL must not be longer than the LeaseDuration of its candidates.
	As Format

	// TTL is the session time: other sessions end one whose renewals they have not seen for that long, and a twentieth
	// more. From a second to an hour. 0 means 10 s.
	TTL time.Duration

	// ConnectTimeout bounds the opening of a session. 0 means 4 s, so that a wrong address is reported within 5 s.
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
	f.ConnectTimeout = cmp.Or(f.ConnectTimeout, defaultConnect)
	f.Logger = logs.Or(f.Logger)
	if f.Namespace == "" {
		var err error
		if f.Namespace, err = namespaceOfPod(); err != nil {
			return nil, fmt.Errorf("%w: Namespace is empty, and this is no pod: %w", backend.ErrInvalid, err)
		}
	}
	switch {
	case f.TTL < minTTL || f.TTL > maxTTL:
		return nil, fmt.Errorf("%w: TTL %v is not between %v and %v", backend.ErrInvalid, f.TTL, minTTL, maxTTL)
	case f.As != "" && f.As != ClientGo:
		return nil, fmt.Errorf("%w format as=%s: known is %s", backend.ErrInvalid, f.As, ClientGo)
	case f.ConnectTimeout < 0:
		return nil, fmt.Errorf("%w: connect timeout %v is negative", backend.ErrInvalid, f.ConnectTimeout)
	case len(validation.IsDNS1123Label(f.Namespace)) > 0:
		return nil, fmt.Errorf("%w namespace %.80q: at most 63 lower-case letters, digits and hyphens are possible", backend.ErrInvalid, f.Namespace)
	}
	if f.Prefix != "" {
		return &f, backend.CheckName(f.Prefix)
	}
	return &f, nil
}

// backoff returns the pauses between attempts, which are short compared with the TTL.
func (o *Options) backoff() backoff.Backoff {
	return backoff.Backoff{Min: o.TTL / 100, Max: o.TTL / 10}
}

// attempt bounds a request that may be sent again.
func (o *Options) attempt() time.Duration { return o.TTL / 3 }

// catchingUp is more than the time for which an API server whose memory is behind waits for it, 3 s (blockTimeout in watch_cache.go), before it
// says so, or asks etcd.
const catchingUp = 4 * time.Second

// patient bounds a list from a server that may be behind.
func (o *Options) patient() time.Duration { return max(o.attempt(), catchingUp) }
