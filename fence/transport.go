package fence

import (
	"fmt"
	"net/http"
	"strconv"
)

// A Term has what a sender must know of its leadership. An *elect.Term is one.
type Term interface {
	// Token returns the term's number, which is larger than those of all terms before.
	Token() uint64
	// Check returns nil while work may begin, and afterwards why it may not.
	Check() error
}

// A Transport sends requests with the token of a term, and sends none when the term is over. It is
// safe for concurrent use if Term and Base are.
//
//	client := &http.Client{Transport: &fence.Transport{Term: term}}
//
// Every request through it has the token, also one that follows a redirect. A request that has been
// sent goes on when the term ends, unless its context ends: give it the context of the term. The
// receiver refuses requests that arrive too late.
type Transport struct {
	Term Term
	Base http.RoundTripper // nil means http.DefaultTransport
}

// RoundTrip sends r with the token of the term. If the term is over it sends nothing, and
// returns an error that wraps the one of [Term] Check.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.Term.Check(); err != nil {
		if r.Body != nil {
			r.Body.Close() // as every RoundTripper must
		}
		return nil, fmt.Errorf("fence: the request is not sent: %w", err)
	}
	r = r.Clone(r.Context()) // a RoundTripper must not change what it was given
	r.Header.Set(Header, strconv.FormatUint(t.Term.Token(), 10))
	if t.Base != nil {
		return t.Base.RoundTrip(r)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// Refused returns a [*StaleError] if the response says that the token of its request was
// refused, and nil otherwise. A 412 without the header is not about tokens: services also answer
// If-Match with 412.
func Refused(resp *http.Response) error {
	if resp.StatusCode != http.StatusPreconditionFailed {
		return nil
	}
	values := resp.Header.Values(Header)
	if len(values) != 1 {
		return nil
	}
	stale := new(StaleError)
	if values[0] != "0" { // the largest is known
		var err error
		if stale.Largest, err = ParseToken(values[0]); err != nil {
			return nil
		}
	}
	if resp.Request != nil {
		stale.Token, _ = RequestToken(resp.Request) // 0 if a proxy of the sender has set it
	}
	return stale
}
