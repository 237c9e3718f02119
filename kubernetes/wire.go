package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/backend/kit/clock"
)

// A wire sends requests to the API server. It is safe for concurrent use.
type wire struct {
	http  *http.Client
	conns *connections
	base  *url.URL // of the API server
	path  string   // of the Leases of the namespace, below base
	where string   // the namespace, for errors
	log   *slog.Logger

	turns turns
	soon  time.Duration // how long a renewal waits at most where the API server asks it to wait

	// seen is the largest resource version that any answer has had. Lists are asked for that one or a later one, so that this process
	// never sees an earlier state than it has seen before, whichever of several API servers answers.
	seen atomic.Int64

	mu      sync.Mutex
	granted map[string]bool          // what the API server has done for this client, by verb
	refused map[string]clock.Instant // since when it refuses to
	said    map[string]bool          // which refusals were logged
}

const (
	// maxAnswer is the longest answer that is read. A page of a list is far below that.
	maxAnswer = 64 << 20
	// page is how many objects a list asks for at a time. Each has at most a few KiB, but for records with long values.
	page = 500
)

// What a request accepts: whole objects, or their metadata alone.
const (
	whole        = "application/json"
	metadata     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	metadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

func newWire(cfg *rest.Config, o *Options) (*wire, error) {
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("%w address of the API server: %w", backend.ErrInvalid, err)
	}
	client, conns, err := newClient(cfg, o)
	if err != nil {
		return nil, fmt.Errorf("%w configuration: %w", backend.ErrInvalid, err)
	}
	return &wire{turns: newTurns(), soon: o.TTL / 10, granted: make(map[string]bool), refused: make(map[string]clock.Instant), said: make(map[string]bool),
		log: o.Logger, http: client, conns: conns, base: base, where: o.Namespace, path: "/apis/" + apiVersion + "/namespaces/" + o.Namespace + "/" + resource}, nil
}

func (w *wire) close() { w.http.CloseIdleConnections() }

// Answers of the API server that say what the objects are like.
var (
	errMissing  = errors.New("there is no such object")
	errConflict = errors.New("the object has changed")
	errExists   = errors.New("the object is there already")
	errOld      = errors.New("that version is too old")
	errAhead    = errors.New("that version is not known yet")
)

// lost reports whether err leaves open what became of the request.
func lost(err error) bool { return errors.Is(err, backend.ErrUnavailable) }

// gone returns nil if err says that the object is not there.
func gone(err error) error {
	if errors.Is(err, errMissing) {
		return nil
	}
	return err
}

// A status is what the API server says of a request that it refuses.
type status struct {
	Kind    string `json:"kind"`
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// err returns what the status of an answer means. code is that of HTTP; 0 stands for the one in s.
func (s *status) err(code int) error {
	if code == 0 {
		code = s.Code
	}
	message := kit.Clip(s.Message)
	if message == "" {
		message = http.StatusText(code)
	}
	why := fmt.Errorf("the API server says %d: %s", code, message)
	switch {
	case code == http.StatusNotFound:
		return fmt.Errorf("%w: %w", errMissing, why)
	case code == http.StatusConflict && s.Reason == "AlreadyExists":
		return fmt.Errorf("%w: %w", errExists, why)
	case code == http.StatusConflict:
		return fmt.Errorf("%w: %w", errConflict, why)
	case code == http.StatusGone || s.Reason == "Expired":
		return fmt.Errorf("%w: %w", errOld, why)
	case code == http.StatusGatewayTimeout && strings.Contains(s.Message, "Too large resource version"):
		return fmt.Errorf("%w: %w: %w", errAhead, backend.ErrUnavailable, why)
	case code == http.StatusUnauthorized:
		return fmt.Errorf("%w: %w; %w", backend.ErrDenied, why, errCredentials)
	case code == http.StatusForbidden && lacks(s.Message): // the message names verb, resource and namespace
		return fmt.Errorf("%w: %w; %s", backend.ErrDenied, why, kit.RightsHint)
	case code == http.StatusForbidden:
		return fmt.Errorf("%w: %w", backend.ErrDenied, why)
	case code == http.StatusTooManyRequests || code >= 500:
		return fmt.Errorf("%w: %w", backend.ErrUnavailable, why)
	}
	return fmt.Errorf("%w: %w", backend.ErrInvalid, why)
}

// errCredentials is why a request is refused whoever is to be asked whether it is allowed. An API server says so, too, while what knows the credentials
// cannot be asked.
var errCredentials = errors.New("the API server does not know these credentials")

// lacks reports whether a refusal is for a missing right: "User NAME cannot VERB resource …".
func lacks(message string) bool {
	return strings.Contains(message, `User "`) && strings.Contains(message, " cannot ")
}

// strange says that an answer is not that of an API server.
func strange(why error) error {
	return fmt.Errorf("%w: the answer is not that of a Kubernetes API server: %w", backend.ErrUnavailable, why)
}

// A request is one to the API server.
type request struct {
	method string
	name   string // of the object; empty for the collection
	query  url.Values
	accept string
	body   any // sent as JSON; nil for none
	whole  string
}

// do sends a request, when its turn has come, and reads the answer into out. It waits until limit has passed since then. The API server
// may refuse the request because it has too many: then it has not looked at it, and do sends it again when the server says.
func (w *wire) do(ctx context.Context, limit time.Duration, q request, out any) error {
	give, err := w.turns.take(ctx)
	if err != nil {
		return err
	}
	defer give()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: no answer within %v", backend.ErrUnavailable, limit))
	defer cancel()
	resp, err := w.send(ctx, q)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return failed(ctx, err)
	case len(body) > maxAnswer:
		return strange(fmt.Errorf("it is longer than %d bytes", maxAnswer))
	}
	if err := json.Unmarshal(body, out); err != nil {
		return strange(err)
	}
	return nil
}

// send sends a request, and returns the answer if it is a good one.
func (w *wire) send(ctx context.Context, q request) (*http.Response, error) {
	var body []byte
	if q.body != nil {
		var err error
		if body, err = json.Marshal(q.body); err != nil {
			return nil, err
		}
	}
	var busy error // why it is sent again
	for again := false; ; {
		began := time.Now()
		resp, err := w.once(ctx, q, body)
		switch {
		case rankOf(ctx) != atOnce:
		case err == nil:
			w.conns.renewed(resp.StatusCode)
		case errors.Is(ctx.Err(), context.DeadlineExceeded) && time.Since(began) > w.soon: // otherwise it had no time
			w.conns.unanswered(began)
		}
		switch {
		case err != nil && busy != nil:
			return nil, fmt.Errorf("%w (before that: %v)", failed(ctx, err), busy)
		case err != nil:
			return nil, failed(ctx, err)
		}
		if resp.StatusCode < 300 {
			w.grants(q.verb())
			return resp, nil
		}
		var s status
		answer, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
		resp.Body.Close()
		if (json.Unmarshal(answer, &s) != nil || s.Kind != "Status") && resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusUnauthorized {
			// Not even a refusal: something else is at this address.
			return nil, strange(fmt.Errorf("it says %s: %s", resp.Status, kit.Clip(string(answer))))
		}
		if resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusConflict {
			w.grants(q.verb()) // who may not do it is not told that
		}
		switch {
		case resp.StatusCode == http.StatusTooManyRequests:
			busy = s.err(resp.StatusCode)
			wait := retryAfter(resp)
			if rankOf(ctx) == atOnce {
				wait = min(wait, w.soon) // otherwise the session might end meanwhile
			}
			if err := backoff.Sleep(ctx, wait); err != nil {
				return nil, fmt.Errorf("%w (before that: %v)", err, busy)
			}
		case resp.StatusCode == http.StatusUnauthorized && !again:
			again = true           // the token has just been replaced, perhaps: client-go forgets one that was refused
			w.conns.replace(began) // or the certificate
		default:
			return nil, w.passing(q.verb(), s.err(resp.StatusCode))
		}
	}
}

// verb returns the verb of RBAC that the request needs.
func (q *request) verb() string {
	switch {
	case q.whole != "":
		return q.whole
	case q.method == http.MethodPost:
		return "create"
	case q.method != http.MethodGet:
		return strings.ToLower(q.method)
	case q.query.Has("watch"):
		return "watch"
	case q.name == "":
		return "list"
	}
	return "get"
}

// grants notes that the API server has carried out a request with that verb.
func (w *wire) grants(verb string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.granted[verb] = true
	delete(w.refused, verb)
	delete(w.said, verb)
}

// deniedFor is for how long a refusal counts as passing that names a missing right, or a server that is not ready, if the API
// server has carried out the like before. A server that has just been started refuses everything until it has read the roles. So
// does one that it asks for such decisions. Other refusals, such as of a policy for admission or of a quota, are about what was
// to be written.
const deniedFor = 30 * time.Second

// passing returns err, or an error that matches [backend.ErrUnavailable] if err is a refusal that may pass. Another refusal is logged once: what
// this package does of its own accord, such as to end a session that has crashed, has no caller who could be told.
func (w *wire) passing(verb string, err error) error {
	if !errors.Is(err, backend.ErrDenied) {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	text := err.Error() // the last is what admission says that has just been started
	missing := lacks(text) || errors.Is(err, errCredentials) || strings.Contains(text, "not yet ready to handle request")
	if !missing {
		verb += ", by a policy" // what else is allowed with the verb says nothing of that
	}
	if _, already := w.refused[verb]; missing && !already {
		w.refused[verb] = clock.Now()
	}
	if !missing || !w.granted[verb] || clock.Since(w.refused[verb]) > deniedFor {
		if !w.said[verb] {
			w.said[verb] = true
			w.log.Error("the API server refuses what an election needs", "verb", verb, "why", err)
		}
		return err
	}
	return fmt.Errorf("%w: it has allowed this before, and may not be ready: %v", backend.ErrUnavailable, err)
}

// retryAfter returns when to send a request again that the server had no time for.
func retryAfter(resp *http.Response) time.Duration {
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds >= 0 && seconds < 60 {
		return max(time.Duration(seconds)*time.Second, 10*time.Millisecond)
	}
	return time.Second
}

func (w *wire) once(ctx context.Context, q request, body []byte) (*http.Response, error) {
	u := *w.base
	if q.whole != "" {
		u.Path = strings.TrimSuffix(u.Path, "/") + q.whole
	} else {
		u.Path = strings.TrimSuffix(u.Path, "/") + w.path
	}
	if q.name != "" {
		u.Path += "/" + q.name
	}
	u.RawQuery = q.query.Encode()
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, q.method, u.String(), reader)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", q.accept)
	switch {
	case q.method == http.MethodPatch:
		req.Header.Set("Content-Type", "application/merge-patch+json")
	case body != nil:
		req.Header.Set("Content-Type", "application/json")
	}
	return w.http.Do(req)
}

// failed returns why a request has failed that was not answered, or not to the end.
func failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w", backend.ErrUnavailable, kit.Brief(err))
}

// saw notes a resource version.
func (w *wire) saw(version int64) {
	for old := w.seen.Load(); version > old && !w.seen.CompareAndSwap(old, version); old = w.seen.Load() {
	}
}

// object sends a request whose answer is an object of that name.
func (w *wire) object(ctx context.Context, limit time.Duration, q request, name string) (*object, error) {
	out := new(object)
	if err := w.do(ctx, limit, q, out); err != nil {
		return nil, err
	}
	err := out.check()
	if err == nil && out.Metadata.Name != name {
		err = fmt.Errorf("it is about %.80q, and not %q", out.Metadata.Name, name)
	}
	if err != nil {
		return nil, strange(err)
	}
	w.saw(out.version())
	return out, nil
}

// create creates an object.
func (w *wire) create(ctx context.Context, limit time.Duration, o *object) (*object, error) {
	made, err := w.object(ctx, limit, request{method: http.MethodPost, accept: whole, body: o}, o.Metadata.Name)
	if errors.Is(err, errMissing) {
		err = fmt.Errorf("%w namespace %q: %w", backend.ErrInvalid, w.where, err)
	}
	return made, err
}

// get reads an object; accept is whole or metadata. It is as fresh as etcd.
func (w *wire) get(ctx context.Context, limit time.Duration, name, accept string) (*object, error) {
	o, err := w.object(ctx, limit, request{method: http.MethodGet, name: name, accept: accept}, name)
	if err == nil && o.going() {
		return nil, errMissing
	}
	return o, err
}

// patch changes an object, if it has the version that p names. The answer has its metadata alone.
func (w *wire) patch(ctx context.Context, limit time.Duration, name string, p *patch) (*object, error) {
	return w.object(ctx, limit, request{method: http.MethodPatch, name: name, accept: metadata, body: p}, name)
}

// remove deletes an object. An empty UID or version is no condition.
func (w *wire) remove(ctx context.Context, limit time.Duration, name, uid, version string) error {
	type preconditions struct {
		UID             string `json:"uid,omitempty"`
		ResourceVersion string `json:"resourceVersion,omitempty"`
	}
	options := struct {
		Kind          string        `json:"kind"`
		APIVersion    string        `json:"apiVersion"`
		Preconditions preconditions `json:"preconditions,omitzero"`
	}{Kind: "DeleteOptions", APIVersion: "v1", Preconditions: preconditions{uid, version}}
	var out struct {
		Kind    string `json:"kind"`
		Status  string `json:"status"`
		Details struct {
			Name string `json:"name"`
		} `json:"details"`
		Metadata meta `json:"metadata"` // if it is the object, which somebody else must let go first (a finalizer)
	}
	if err := w.do(ctx, limit, request{method: http.MethodDelete, name: name, accept: whole, body: &options}, &out); err != nil {
		return err
	}
	if !(out.Kind == "Status" && out.Status == "Success" && out.Details.Name == name) && !(out.Kind == "Lease" && out.Metadata.Name == name) {
		return strange(fmt.Errorf("it does not say that %s was deleted", name))
	}
	return nil
}

// A listing is a list at one version.
type listing struct {
	items   []*object
	version int64
}

// list lists the objects that the labels select, as of one version, which is no earlier than any that this process has seen. It
// comes in pages. accept is whole or metadata.
func (w *wire) list(ctx context.Context, limit time.Duration, selector, accept string) (l listing, err error) {
	if accept == metadata {
		accept = metadataList
	}
	q := url.Values{"labelSelector": {selector}, "limit": {strconv.Itoa(page)}}
	least := w.seen.Load()
	if least > 0 {
		q.Set("resourceVersion", strconv.FormatInt(least, 10))
		q.Set("resourceVersionMatch", "NotOlderThan")
	}
	for {
		var out struct {
			Metadata struct {
				ResourceVersion string `json:"resourceVersion"`
				Continue        string `json:"continue"`
			} `json:"metadata"`
			Items []*object `json:"items"`
		}
		err := w.do(ctx, limit, request{method: http.MethodGet, query: q, accept: accept}, &out)
		switch {
		case errors.Is(err, errAhead) && q.Has("resourceVersion"):
			// Another server knew that version. Without one, this server asks etcd for the newest, perhaps after it has waited again.
			q.Del("resourceVersion")
			q.Del("resourceVersionMatch")
			continue
		case errors.Is(err, errOld) && q.Has("continue"): // the first page is too old by now
			q.Del("continue")
			l = listing{}
			continue
		case err != nil:
			return l, err
		}
		if l.version, err = versionOf(out.Metadata.ResourceVersion); err != nil {
			return l, strange(err)
		}
		if l.version < least {
			return l, errReset
		}
		for _, o := range out.Items {
			if o == nil {
				return l, strange(errors.New("it has no object where one must be"))
			}
			if err := o.check(); err != nil {
				return l, strange(err)
			}
		}
		l.items = append(l.items, slices.DeleteFunc(out.Items, (*object).going)...)
		if out.Metadata.Continue == "" {
			w.saw(l.version)
			return l, nil
		}
		// The pages that follow are of the version of the first.
		q.Del("resourceVersion")
		q.Del("resourceVersionMatch")
		q.Set("continue", out.Metadata.Continue)
	}
}

// An event is what a watch tells.
type event struct {
	deleted, added bool
	*object
}

// now returns the object as it is after the event: nil if it is there no more.
func (e event) now() *object {
	if e.deleted {
		return nil
	}
	return e.object
}

// lockSelector selects one Lease by its name: it has no labels of ours. What a watch tells of it is whole.
func lockSelector(name string) string { return nameField + "=" + name }

// watch calls f for each change, after the version, of what the labels select, until the stream ends. The objects have their metadata
// alone; see also [lockSelector]. When its turn has come it waits for the stream to begin until limit has passed, and then calls opened.
func (w *wire) watch(ctx context.Context, limit time.Duration, selector string, version int64, opened func(), f func(event)) error {
	give, err := w.turns.take(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(limit, func() { cancel(fmt.Errorf("%w: no watch within %v", backend.ErrUnavailable, limit)) })
	defer late.Stop()
	q := url.Values{"watch": {"true"}, "labelSelector": {selector}, "resourceVersion": {strconv.FormatInt(version, 10)}}
	accept := metadata
	if name, one := strings.CutPrefix(selector, lockSelector("")); one {
		q.Del("labelSelector")
		q.Set("fieldSelector", lockSelector(name))
		accept = whole
	}
	resp, err := w.send(ctx, request{method: http.MethodGet, query: q, accept: accept})
	give()
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	late.Stop()
	opened()
	for dec := json.NewDecoder(resp.Body); ; {
		var raw struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := dec.Decode(&raw); err != nil {
			return failed(ctx, err)
		}
		e, err := parseEvent(raw.Type, raw.Object)
		if err != nil {
			return err
		}
		w.saw(e.version())
		f(e)
	}
}

// parseEvent reads an event of a watch. An error that it tells of is returned.
func parseEvent(kind string, raw json.RawMessage) (e event, err error) {
	switch kind {
	case "ADDED", "MODIFIED", "DELETED":
	case "ERROR":
		var s status
		if err := json.Unmarshal(raw, &s); err != nil {
			return e, strange(err)
		}
		return e, s.err(0)
	default:
		return e, strange(fmt.Errorf("it has an event of type %.40q", kind))
	}
	e = event{deleted: kind == "DELETED", added: kind == "ADDED", object: new(object)}
	if err := json.Unmarshal(raw, e.object); err != nil {
		return e, strange(err)
	}
	if err := e.check(); err != nil {
		return e, strange(err)
	}
	e.deleted = e.deleted || e.going()
	return e, nil
}
