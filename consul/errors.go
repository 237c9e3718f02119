package consul

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// Consul has no codes for its errors. These texts are those of agent/structs,
// agent/consul/state and acl of Consul 1.22, and have been the same since 1.0.
const (
	textDenied      = "Permission denied"
	textNoToken     = "ACL not found"
	textNoSession   = "invalid session"
	textUnknown     = "Session id '" // agent/session_endpoint.go, SessionRenew
	textMissingNode = "Missing node registration"
	textBadTTL      = "Invalid Session TTL"
	textUnknownVerb = "unknown KV verb"
	textAway        = "AccessorID 'primary-dc-down'"    // agent/consul/acl.go: the token could not be looked up
	textWantsTLS    = "HTTP request to an HTTPS server" // package net/http's
)

// errTooLarge says that a request is larger than the agent allows.
var errTooLarge = fmt.Errorf("%w: more than the agent takes in one request", backend.ErrInvalid)

// explain gives the error of a request its sentinel. An unknown error may pass by itself: a broken
// connection, an answer cut short, a server that has lost its leader. The original error is in the
// text only: the time limit of a single request must not look like the end of the caller's context.
func (c *client) explain(err error) error {
	var status api.StatusError
	if errors.Is(err, errTooLong) {
		return c.strange(err.Error())
	}
	if !errors.As(err, &status) {
		return fmt.Errorf("%w: %v%s", backend.ErrUnavailable, kit.Brief(err), c.advice(err))
	}
	status.Body = kit.Clip(status.Body)
	err = status
	switch {
	case strings.Contains(status.Body, textNoSession):
		return fmt.Errorf("%w: Consul does not know it any more", backend.ErrSessionEnded)
	case strings.Contains(status.Body, textNoToken) && c.token != nil && c.token.Unsettled():
		return fmt.Errorf("%w: the token was accepted before, and is refused now: %v", backend.ErrUnavailable, err)
	case strings.Contains(status.Body, textAway):
		return fmt.Errorf("%w: the primary datacenter, which has the tokens, cannot be asked: %v", backend.ErrUnavailable, err)
	case strings.Contains(status.Body, textDenied), strings.Contains(status.Body, textNoToken):
		return c.denied(status.Body)
	case strings.Contains(status.Body, textUnknownVerb):
		return fmt.Errorf("%w Consul: it is older than 1.14 and cannot do what is needed (%s)", backend.ErrInvalid, status.Body)
	case strings.Contains(status.Body, textBadTTL):
		return fmt.Errorf("%w TTL %v: %v; choose another TTL, or change session_ttl_min of the servers", backend.ErrInvalid, c.o.TTL, err)
	}
	switch status.Code {
	case http.StatusNotFound: // every Consul has this path; renew asks unknownSession
		return c.strange(err.Error())
	case http.StatusForbidden, http.StatusUnauthorized:
		return c.denied(status.Body)
	case http.StatusTooManyRequests:
		return fmt.Errorf("%w: %v"+connectionLimit, backend.ErrUnavailable, err)
	case http.StatusRequestEntityTooLarge:
		return fmt.Errorf("%w: %v", errTooLarge, err)
	case http.StatusBadRequest, http.StatusMethodNotAllowed:
		if strings.Contains(status.Body, textWantsTLS) {
			return fmt.Errorf("%w: %s speaks TLS; add tls=on to the URL, or set CONSUL_HTTP_SSL", backend.ErrInvalid, c.addr)
		}
		return fmt.Errorf("%w: %v", backend.ErrInvalid, err)
	}
	return fmt.Errorf("%w: %v", backend.ErrUnavailable, err)
}

const connectionLimit = "; see the limits of the agent: http_max_conns_per_client is for each address, and over TLS queries share a connection"

// advice says more about a request that got no answer, or one that cannot be read.
func (c *client) advice(err error) string {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		return "; " + c.addr + " does not speak TLS; remove tls=on and the files from the URL, or unset CONSUL_HTTP_SSL"
	case errors.As(err, &syntax), errors.As(err, &kind):
		return "; " + c.stranger()
	case strings.Contains(err.Error(), "readLoopPeekFailLocked"): // net/http says so if the server has closed a connection before a request was sent on it
		return "; " + c.addr + " closes connections before it is asked anything" + connectionLimit
	case errors.Is(err, context.DeadlineExceeded):
		return "; nothing at " + c.addr + " answers in time"
	}
	return ""
}

// strange is the error of an answer that does not come from Consul. Such an answer proves nothing.
func (c *client) strange(what string) error {
	return fmt.Errorf("%w: %s; %s", backend.ErrUnavailable, what, c.stranger())
}

func (c *client) stranger() string {
	return "what answers at " + c.addr + " is not the HTTP API of Consul, which has the port 8500 by default, or something between answers in its place"
}

// denied says which rights are needed.
func (c *client) denied(why string) error {
	return fmt.Errorf("%w: %s; a candidate's token needs %s", backend.ErrDenied, why, c.o.rights())
}

// unknownSession reports whether Consul has answered that there is no such session. A 404
// alone is not enough: it may come from an ingress that has no route.
func unknownSession(err error) bool {
	var status api.StatusError
	return errors.As(err, &status) && status.Code == http.StatusNotFound && strings.Contains(status.Body, textUnknown)
}

// hidden is the error of an answer from which Consul says that it has left out something at the key, or below it.
func (c *client) hidden(key string) error {
	return c.denied(fmt.Sprintf("the token lacks permission 'key:read' on %q, or on some of what is there", key))
}

// leftOut is the error of an answer from which Consul has left out the key. Such an answer does not say why, but the refusal to read the
// key does.
func (c *client) leftOut(ctx context.Context, key string) error {
	_, _, err := c.at(ctx).KV().Get(key, new(api.QueryOptions).WithContext(ctx))
	if err == nil {
		return fmt.Errorf("%w: Consul has left out %q, and shows it now", backend.ErrUnavailable, key)
	}
	return c.explain(err)
}

// crowded reports whether the agent refuses more connections from this address.
func crowded(err error) bool {
	var status api.StatusError
	return errors.As(err, &status) && status.Code == http.StatusTooManyRequests
}
