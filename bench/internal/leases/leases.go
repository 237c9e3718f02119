// Package leases is a bare client of the Leases of a Kubernetes API server that coordtest has
// started: an HTTP request for each call, over one connection, and nothing else.
package leases

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// Namespace is where all Leases are.
const Namespace = "default"

const path = "/apis/coordination.k8s.io/v1/namespaces/" + Namespace + "/leases"

// A Client is safe for concurrent use.
type Client struct {
	// HTTP sends requests to URL, and to what is below it, as somebody who may do everything.
	HTTP *http.Client
	URL  string
}

// New returns a client of the API server at addr, a host:port. The caller closes it.
func New(addr string) *Client {
	return &Client{URL: "https://" + addr, HTTP: &http.Client{Transport: bearer{&http.Transport{
		// The server has made its certificate itself, for this run.
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		ForceAttemptHTTP2: true, // as client-go does
	}}}}
}

// Close closes the client's connections that nothing is under way on.
func (c *Client) Close() { c.HTTP.CloseIdleConnections() }

// bearer adds the token to each request.
type bearer struct{ *http.Transport }

func (b bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+coordtest.KubernetesToken)
	return b.Transport.RoundTrip(req)
}

// An object is what this client needs to know of a Lease.
type object struct {
	Metadata struct {
		Name            string            `json:"name"`
		ResourceVersion string            `json:"resourceVersion,omitempty"`
		Labels          map[string]string `json:"labels,omitempty"`
		Annotations     map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
}

// Create creates a Lease.
func (c *Client) Create(ctx context.Context, name string) error {
	var lease object
	lease.Metadata.Name = name
	return c.call(ctx, http.MethodPost, path, &lease, nil)
}

// List returns the names that begin with the prefix, of the newest state, and its version.
func (c *Client) List(ctx context.Context, prefix string) (names []string, version string, err error) {
	var list struct {
		Metadata struct{ ResourceVersion string }
		Items    []object
	}
	if err := c.call(ctx, http.MethodGet, path, nil, &list); err != nil {
		return nil, "", err
	}
	for _, lease := range list.Items {
		if strings.HasPrefix(lease.Metadata.Name, prefix) {
			names = append(names, lease.Metadata.Name)
		}
	}
	return names, list.Metadata.ResourceVersion, nil
}

// A Member is a Lease that is a place in a line of this project.
type Member struct {
	Name     string
	Session  string // the Lease of the process
	position int64
}

// Members returns those who stand in a line of this project, in order. docs/kubernetes.md says what Leases it has.
func (c *Client) Members(ctx context.Context, election string) (line []Member, err error) {
	const domain = "succession-dev.github.io/"
	var list struct{ Items []object }
	if err := c.call(ctx, http.MethodGet, path+"?labelSelector="+url.QueryEscape(domain+"member"), nil, &list); err != nil {
		return nil, err
	}
	for _, lease := range list.Items {
		if lease.Metadata.Annotations[domain+"name"] != election {
			continue
		}
		m := Member{Name: lease.Metadata.Name, Session: lease.Metadata.Labels[domain+"of"]}
		// The position is noted as soon as something is written into the Lease; before, it is the version.
		if m.position, err = strconv.ParseInt(cmp.Or(lease.Metadata.Annotations[domain+"position"], lease.Metadata.ResourceVersion), 10, 64); err != nil {
			return nil, err
		}
		line = append(line, m)
	}
	slices.SortFunc(line, func(a, b Member) int { return cmp.Compare(a.position, b.position) })
	return line, nil
}

// Delete deletes a Lease.
func (c *Client) Delete(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, path+"/"+name, nil, nil)
}

// Exists reports whether there is a Lease of that name. It asks for the newest state.
func (c *Client) Exists(ctx context.Context, name string) (bool, error) {
	err := c.call(ctx, http.MethodGet, path+"/"+name, nil, nil)
	if s := (statusError{}); errors.As(err, &s) && s.status == http.StatusNotFound {
		return false, nil
	}
	return err == nil, err
}

// Watch watches a Lease from a version on. When it returns, the server has begun. Next then blocks
// until the Lease has been deleted. The watch ends with ctx.
func (c *Client) Watch(ctx context.Context, name, version string) (next func() error, err error) {
	query := url.Values{"watch": {"true"}, "fieldSelector": {"metadata.name=" + name}, "resourceVersion": {version}}
	resp, err := c.send(ctx, http.MethodGet, path+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	events := json.NewDecoder(resp.Body)
	return func() error {
		defer resp.Body.Close()
		for {
			var event struct{ Type string }
			if err := events.Decode(&event); err != nil {
				return err
			}
			switch event.Type {
			case "DELETED":
				return nil
			case "ERROR":
				return fmt.Errorf("the watch of %s has failed", name)
			}
		}
	}, nil
}

// call sends in, and reads the answer into out; both may be nil.
func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	resp, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && out != nil {
		err = json.Unmarshal(answer, out)
	}
	return err
}

// send sends a request, and fails where the answer is not a good one.
func (c *Client) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		defer resp.Body.Close()
		answer, _ := io.ReadAll(resp.Body) // the status says enough
		return nil, statusError{resp.StatusCode, fmt.Sprintf("%s %s: %s: %s", method, path, resp.Status, answer)}
	}
	return resp, nil
}

type statusError struct {
	status int
	text   string
}

func (e statusError) Error() string { return e.text }
