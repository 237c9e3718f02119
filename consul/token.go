package consul

import (
	"errors"
	"net/http"
	"strings"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/internal/security"
)

// tokenOf returns the file that contains the ACL token, or nil if it is in no file. Of several sources
// it takes the one that the api package takes.
func tokenOf(cfg *api.Config) *security.Secret {
	env := api.DefaultConfig()
	file := env.TokenFile
	switch {
	case cfg.TokenFile != "" && cfg.TokenFile != env.TokenFile:
		file = cfg.TokenFile
	case cfg.Token != "" && cfg.Token != env.Token:
		return nil
	}
	if file == "" {
		return nil
	}
	return security.NewSecret("token", file, "")
}

// authorized adds the present ACL token to each request. The api package reads the token only once.
type authorized struct {
	http.RoundTripper
	token  *security.Secret
	status string // what the paths begin with that need no token, and so do not show whether it is accepted
}

// What an answer says about the token, for [security.Secret]. The caller of the request gets the
// answer itself.
var (
	errRefused = errors.New("the token was refused")
	// After errUnsaid the secret neither notes the token as accepted nor tries another one.
	errUnsaid = errors.New("the answer does not show whether the token is accepted")
)

// accepted returns nil if the answer shows that the token of its request is accepted. The answer to
// a blocking query does not show that, because Consul checked the token when the query came.
func accepted(req *http.Request, resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusForbidden:
		return errRefused
	case http.StatusOK, http.StatusNotFound, http.StatusConflict:
		if !req.URL.Query().Has("index") {
			return nil
		}
	}
	return errUnsaid
}

func (t authorized) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	if strings.HasPrefix(req.URL.Path, t.status) {
		return t.RoundTripper.RoundTrip(req)
	}
	err = t.token.Use(isRefused, func(token string) error {
		again := req.Clone(req.Context())
		again.Header.Set("X-Consul-Token", token)
		if resp != nil { // the first token was refused
			resp.Body.Close()
			if req.GetBody != nil {
				if again.Body, err = req.GetBody(); err != nil {
					return err
				}
			}
		}
		if resp, err = t.RoundTripper.RoundTrip(again); err != nil {
			return err
		}
		return accepted(req, resp)
	})
	if isRefused(err) || errors.Is(err, errUnsaid) {
		return resp, nil // it says why
	}
	return resp, err
}

func isRefused(err error) bool { return errors.Is(err, errRefused) }

func (t authorized) CloseIdleConnections() { closeIdle(t.RoundTripper) }
