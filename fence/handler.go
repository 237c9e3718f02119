package fence

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Header is the request header in which a leader sends its token, in decimal. A response that
// refuses a token has the largest token in it, or 0 if that is not known.
const Header = "Succession-Token"

// RequestToken returns the token of a request. Its error is an [ErrMissing], or an
// [ErrInvalid] where there is no single number; [Error] answers both.
func RequestToken(r *http.Request) (uint64, error) {
	switch values := r.Header.Values(Header); len(values) {
	case 0:
		return 0, fmt.Errorf("fence: %w: send it as the request header %s", ErrMissing, Header)
	case 1:
		return ParseToken(values[0])
	default: // it is not known which of them a proxy has checked
		return 0, fmt.Errorf("fence: %w: the request has %d headers %s", ErrInvalid, len(values), Header)
	}
}

// Error answers a request that failed with err: 412 for an [ErrStale], 428 for an
// [ErrMissing], 400 for an [ErrInvalid], and 500 for all others, whose text it does not send.
func Error(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	stale := new(StaleError)
	switch {
	case errors.Is(err, ErrStale):
		errors.As(err, &stale)
		code = http.StatusPreconditionFailed
		w.Header().Set(Header, strconv.FormatUint(stale.Largest, 10)) // also 0: without the header, Refused sees no refusal
	case errors.Is(err, ErrMissing):
		code = http.StatusPreconditionRequired
	case errors.Is(err, ErrInvalid):
		code = http.StatusBadRequest
	default:
		http.Error(w, http.StatusText(code), code)
		return
	}
	http.Error(w, err.Error(), code)
}

// Handler returns a handler that runs next in [Checker.Do] with the token of the request. It
// answers a request that has none, or whose token is refused, with [Error].
//
// The function resource says which resource a request concerns; it must be safe for
// concurrent use. If it is nil, all requests concern one, whose name is empty. If two names
// stand for the same data, one of them does not protect what is written under the other, so
// take names from your data and not from paths as they were sent. A path value
// ([http.Request.PathValue]) exists only behind the mux, so put Handler inside the mux.
//
// A request without a token and with a safe method (GET, HEAD, OPTIONS, TRACE) runs next
// without Do: it changes nothing, and its sender does not lead.
//
// While next runs for one token, requests with a larger one wait for it. The context of next then
// ends, and reads of its request's body fail, because a paused leader may have sent only half of
// it. Give the server a WriteTimeout, because that leader may not read the response either. All
// work that next has begun must be over when it returns.
func Handler(c *Checker, resource func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, err := RequestToken(r)
		if errors.Is(err, ErrMissing) && safe(r.Method) {
			next.ServeHTTP(w, r)
			return
		}
		if err != nil {
			Error(w, err)
			return
		}
		name := ""
		if resource != nil {
			name = resource(r)
		}
		err = c.Do(r.Context(), name, token, func(ctx context.Context) error {
			defer stopReading(ctx, w)()
			next.ServeHTTP(w, r.WithContext(ctx))
			return nil
		})
		if err != nil {
			Error(w, err)
		}
	})
}

// safe reports whether requests with the method change nothing (RFC 9110, section 9.2.1).
func safe(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// stopReading makes reads of the request's body fail when ctx ends, until release is called.
func stopReading(ctx context.Context, w http.ResponseWriter) (release func()) {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		// A writer that cannot do this has no connection that could block.
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))
	})
	return func() {
		if !stop() {
			<-done // the deadline must not hit the next request of the connection
		}
	}
}
