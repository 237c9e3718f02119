package consul

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
)

// fail wraps err, unless it is nil, as the error of an operation.
func fail(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &backend.Error{Backend: scheme, Op: op, Name: name, Err: err}
}

// Consul has no codes for its errors: these texts are those of agent/structs,
// agent/consul/state and acl of Consul 1.22, and have been so since 1.0.
const (
	textDenied      = "Permission denied"
	textNoToken     = "ACL not found"
	textNoSession   = "invalid session"
	textMissingNode = "Missing node registration"
	textBadTTL      = "Invalid Session TTL"
)

// explain gives the error of a request its sentinel. What is not understood may
// pass by itself: a broken connection, an answer cut short, a server that has lost
// its leader. The original is in the text only: the time limit of a single request
// must not look like the end of the caller's context.
func (c *client) explain(err error) error {
	var status api.StatusError
	if !errors.As(err, &status) {
		return fmt.Errorf("%w: %v", backend.ErrUnavailable, err)
	}
	switch {
	case strings.Contains(status.Body, textNoSession):
		return fmt.Errorf("%w: Consul does not know it any more", backend.ErrSessionEnded)
	case strings.Contains(status.Body, textDenied), strings.Contains(status.Body, textNoToken):
		return c.denied(status.Body)
	case strings.Contains(status.Body, textBadTTL):
		return fmt.Errorf("%w TTL: %v; choose another TTL, or change session_ttl_min of the servers", backend.ErrInvalid, err)
	}
	switch status.Code {
	case http.StatusForbidden, http.StatusUnauthorized:
		return c.denied(status.Body)
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusMethodNotAllowed:
		return fmt.Errorf("%w: %v", backend.ErrInvalid, err)
	}
	return fmt.Errorf("%w: %v", backend.ErrUnavailable, err)
}

// denied says which rights are needed.
func (c *client) denied(why string) error {
	return fmt.Errorf("%w: %s; the token needs %s", backend.ErrDenied, why, c.o.rights())
}

// notFound reports whether Consul has answered that there is no such thing.
func notFound(err error) bool {
	var status api.StatusError
	return errors.As(err, &status) && status.Code == http.StatusNotFound
}
