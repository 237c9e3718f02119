package consul

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// certainly sends a request once more if it was denied, after Consul's leader has read its log. A server that has only just
// become the leader may not have done so. It then knows neither the tokens nor the policies from the rest of the log, and denies
// what they allow. A request that was denied has done nothing, so it may be sent again.
type certainly struct {
	http.RoundTripper
	transactions string // their path
}

func (t certainly) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(req)
	if err != nil || waitsForLog(req.Context()) {
		return resp, err
	}
	if denied, err := denies(req, resp); err != nil {
		return nil, err
	} else if !denied {
		return resp, nil
	}
	_, _ = io.Copy(io.Discard, resp.Body) // so that the connection can be used again
	resp.Body.Close()
	if unread, err := t.awaitLog(req); unread != nil || err != nil {
		return unread, err
	}
	again := req.Clone(req.Context())
	if req.GetBody != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return t.RoundTripper.RoundTrip(again)
}

// waitsForLog reports whether a request with this context is a consistent transaction of reads, or looks at a key again after one: it waits until Consul's leader has read
// its log, and then looks at the token (agent/consul/txn_endpoint.go, Read). All other requests look at the token first.
func waitsForLog(ctx context.Context) bool { return ctx.Value(consistentKey{}) != nil }

// awaitLog sends such a transaction, which is empty. Any answer will do, also one that denies it, unless it says that Consul could not
// read its log: that is then the answer to req, too.
func (t certainly) awaitLog(req *http.Request) (unread *http.Response, err error) {
	u := *req.URL
	u.Path, u.RawPath = t.transactions, ""
	u.RawQuery = url.Values{"dc": req.URL.Query()["dc"]}.Encode()
	read, err := http.NewRequestWithContext(consistent(req.Context()), http.MethodPut, u.String(), strings.NewReader("[]"))
	if err != nil {
		return nil, err
	}
	read.Host, read.Header = req.Host, req.Header.Clone()
	resp, err := t.RoundTripper.RoundTrip(read)
	if err != nil {
		return nil, err
	}
	switch resp.StatusCode {
	case http.StatusOK, http.StatusConflict, http.StatusForbidden:
		_, err = io.Copy(io.Discard, resp.Body)
		return nil, errors.Join(err, resp.Body.Close())
	}
	return resp, nil
}

func (t certainly) CloseIdleConnections() { closeIdle(t.RoundTripper) }

// denies reports whether the answer denies the request, or leaves out what the token may not see. It does not matter what the answer
// to a blocking query leaves out, because the caller then reads again. The body of the answer can still be read.
func denies(req *http.Request, resp *http.Response) (bool, error) {
	switch resp.StatusCode {
	case http.StatusOK, http.StatusNotFound: // a list from which all was left out is not found
		return resp.Header.Get("X-Consul-Results-Filtered-By-ACLs") == "true" && !req.URL.Query().Has("index"), nil
	case http.StatusForbidden:
		return true, nil
	case http.StatusConflict: // of a transaction, whose errors say why
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(body))
		return bytes.Contains(body, []byte(textDenied)), err
	}
	return false, nil
}
