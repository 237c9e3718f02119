package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/internal/calm"
)

// FuzzEvent reads what a watch may tell.
func FuzzEvent(f *testing.F) {
	f.Add("ADDED", `{"metadata":{"name":"member-a","uid":"u","resourceVersion":"7","labels":{"succession-dev.github.io/member":"s"}}}`)
	f.Add("DELETED", `{"kind":"PartialObjectMetadata","metadata":{"name":"x","uid":"u","resourceVersion":"9223372036854775808"}}`)
	f.Add("ERROR", `{"kind":"Status","code":410,"reason":"Expired","message":"too old"}`)
	f.Add("BOOKMARK", `null`)
	f.Fuzz(func(t *testing.T, kind, raw string) {
		e, err := parseEvent(kind, json.RawMessage(raw))
		if err != nil {
			return
		}
		if e.version() <= 0 || e.Metadata.Name == "" {
			t.Errorf("%s %s was read as %+v", kind, raw, e.object)
		}
	})
}

// FuzzObject reads what somebody may have written into a Lease.
func FuzzObject(f *testing.F) {
	f.Add(`{"metadata":{"name":"member-a","uid":"u","resourceVersion":"7","annotations":{"succession-dev.github.io/position":"-1","succession-dev.github.io/ttl":"99999999999999999999"}},"spec":{"holderIdentity":"=AA"}}`)
	f.Add(`{"metadata":{"name":"record-a","uid":"u","resourceVersion":"7","annotations":{"succession-dev.github.io/version":"x","succession-dev.github.io/pins":"[1]","succession-dev.github.io/guards":"[\"a\",\"a b\",\"\"]"}},"spec":{"holderIdentity":"{\"succession\":2}"}}`)
	f.Fuzz(func(t *testing.T, raw string) {
		o := new(object)
		if json.Unmarshal([]byte(raw), o) != nil || o.check() != nil {
			return
		}
		if ttl := o.ttl(); ttl < minTTL || ttl > maxTTL {
			t.Errorf("session time %v", ttl)
		}
		if o.position() == 0 || o.position() > 1<<63-1 {
			t.Errorf("position %d", o.position())
		}
		if v := o.recordVersion(); v == 0 || v < backend.Absent {
			t.Errorf("version %d", v)
		}
		_, _ = o.header()
		_, _ = o.member("e", o)
		for _, e := range o.list(guardsNote) {
			_, object := objectOf(e)
			base(object)
		}
		if p := withoutEntries(o, "a"); p != nil {
			if _, err := json.Marshal(p); err != nil {
				t.Error(err)
			}
		}
	})
}

// Every value comes back as it was.
func FuzzEncode(f *testing.F) {
	f.Add([]byte("host-1"))
	f.Add([]byte(""))
	f.Add([]byte("=x"))
	f.Add([]byte{0, 255})
	f.Fuzz(func(t *testing.T, value []byte) {
		text := encode(value)
		b, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var back string
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		got, err := decode(back)
		if err != nil || string(got) != string(value) || text == "" {
			t.Errorf("%q is %q and then %q, %v", value, text, got, err)
		}
	})
}

func TestOlderThan(t *testing.T) {
	for _, tt := range []struct {
		major, minor string
		older, bad   bool
	}{
		{"1", "30", true, false}, {"1", "30+", true, false}, {"1", "31", false, false}, {"1", "37+", false, false}, {"2", "0", false, false},
		{"0", "99", true, false}, {"", "31", false, true}, {"1", "", false, true}, {"one", "x", false, true},
	} {
		older, err := olderThan(tt.major, tt.minor, 1, 31)
		if older != tt.older || (err != nil) != tt.bad {
			t.Errorf("%s.%s: older %t, %v", tt.major, tt.minor, older, err)
		}
	}
}

// fake is a server that answers as the test says.
func fake(t *testing.T, handle http.HandlerFunc) *rest.Config {
	t.Helper()
	s := httptest.NewTLSServer(handle)
	t.Cleanup(s.Close)
	return &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

// sessionOf opens a session at a server, and tries for so long.
func sessionOf(t *testing.T, cfg *rest.Config, connect time.Duration) error {
	t.Helper()
	b, err := New(cfg, &Options{Namespace: "default", TTL: time.Minute, ConnectTimeout: connect})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	_, err = b.Session(t.Context())
	return err
}

// deleted says that the object of the request was deleted.
func deleted(w http.ResponseWriter, r *http.Request) {
	w.Write([]byte(`{"kind":"Status","status":"Success","details":{"name":"` + path.Base(r.URL.Path) + `"}}`))
}

// What stands between a client and the API server may answer as it likes. Nothing is believed to have gone because of that.
func TestGoneByWord(t *testing.T) {
	for name, tt := range map[string]struct {
		code int
		body string
		gone bool
	}{
		"the API server":            {404, `{"kind":"Status","status":"Failure","code":404,"reason":"NotFound","message":"leases \"x\" not found"}`, true},
		"a gateway without a route": {404, `{"message":"no Route matched with those values"}`, false},
		"a website":                 {404, `<html>not found</html>`, false},
		"nothing":                   {404, ``, false},
		"a conflict of another":     {409, `{"message":"conflict"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := (&Options{Namespace: "default"}).filled()
			if err != nil {
				t.Fatal(err)
			}
			w, err := newWire(fake(t, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(tt.code)
				w.Write([]byte(tt.body))
			}), o)
			if err != nil {
				t.Fatal(err)
			}
			defer w.close()
			_, err = w.get(t.Context(), time.Minute, "x", metadata)
			if errors.Is(err, errMissing) != tt.gone || !tt.gone && !lost(err) {
				t.Errorf("a get: %v", err)
			}
			if err = w.remove(t.Context(), time.Minute, "x", "", ""); errors.Is(err, errMissing) != tt.gone || !tt.gone && !lost(err) {
				t.Errorf("a deletion: %v", err)
			}
		})
	}
	for body, done := range map[string]bool{
		`{"kind":"Status","status":"Success","details":{"name":"x","uid":"u"}}`: true,
		`{"kind":"Lease","metadata":{"name":"x","deletionTimestamp":"…"}}`:      true,
		`{"kind":"Status","status":"Success","details":{"name":"y"}}`:           false,
		`{"ok":true}`: false, `{}`: false, `<html>hello</html>`: false, ``: false,
	} {
		o, err := (&Options{Namespace: "default"}).filled()
		if err != nil {
			t.Fatal(err)
		}
		w, err := newWire(fake(t, func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(body)) }), o)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.remove(t.Context(), time.Minute, "x", "", ""); (err == nil) != done || !done && !lost(err) {
			t.Errorf("a deletion that is answered with %s: %v", body, err)
		}
		w.close()
	}
}

// A refusal is logged with the verb that the Role lacks.
func TestVerbs(t *testing.T) {
	for want, q := range map[string]request{
		"get":    {method: http.MethodGet, name: "x"},
		"list":   {method: http.MethodGet},
		"watch":  {method: http.MethodGet, query: url.Values{"watch": {"true"}}},
		"create": {method: http.MethodPost},
		"patch":  {method: http.MethodPatch, name: "x"},
		"delete": {method: http.MethodDelete, name: "x"},
	} {
		if got := q.verb(); got != want || !slices.Contains(verbs, got) {
			t.Errorf("%+v needs %q, want %q", q, got, want)
		}
	}
}

// An API server that has just been started refuses what it allows. That ends nothing but what it never has allowed.
func TestDeniedForAWhile(t *testing.T) {
	var refuse, unknown atomic.Bool
	var says atomic.Pointer[string]    // why it refuses all patches
	var refusals, version atomic.Int64 // how many more it refuses; the newest version
	cfg := fake(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/version":
			w.Write([]byte(`{"major":"1","minor":"37"}`))
		case unknown.Load():
			w.WriteHeader(http.StatusUnauthorized)
			w.Write([]byte(`{"kind":"Status","code":401,"reason":"Unauthorized","message":"Unauthorized"}`))
		case refuse.Load() || refusals.Add(-1) >= 0:
			w.WriteHeader(http.StatusForbidden)
			w.Write([]byte(`{"kind":"Status","code":403,"reason":"Forbidden","message":"leases.coordination.k8s.io is forbidden: User \"u\" cannot list resource \"leases\""}`))
		case says.Load() != nil && r.Method == http.MethodPatch:
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(status{Kind: "Status", Code: http.StatusForbidden, Reason: "Forbidden", Message: *says.Load()})
		case r.Method == http.MethodDelete:
			deleted(w, r)
		case r.Method == http.MethodPost || r.Method == http.MethodPatch:
			var o object
			_ = json.NewDecoder(r.Body).Decode(&o)
			if r.Method == http.MethodPatch {
				o.Metadata.Name = path.Base(r.URL.Path)
			}
			o.Metadata.UID, o.Metadata.ResourceVersion = "u", strconv.FormatInt(version.Add(1), 10)
			_ = json.NewEncoder(w).Encode(o)
		default:
			<-r.Context().Done()
		}
	})
	b, err := New(cfg, &Options{Namespace: "default", TTL: 10 * time.Second, ConnectTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	refuse.Store(true)
	refreshed := make(chan error, 1)
	go func() { refreshed <- s.Refresh(t.Context()) }()
	select {
	case err := <-refreshed:
		t.Fatalf("while it refuses: %v", err)
	case <-time.After(time.Second):
	}
	if _, err := s.Get(t.Context(), "x"); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("what it never has allowed: %v, want ErrDenied", err)
	}
	refuse.Store(false)
	if err := <-refreshed; err != nil || s.Err() != nil {
		t.Errorf("afterwards: %v, %v", err, s.Err())
	}
	// A server whose admission has just been started is asked again.
	unready := `leases.coordination.k8s.io "x" is forbidden: not yet ready to handle request`
	says.Store(&unready)
	go func() { refreshed <- s.Refresh(t.Context()) }()
	select {
	case err := <-refreshed:
		t.Fatalf("while it is not ready: %v", err)
	case <-time.After(time.Second):
	}
	says.Store(nil)
	if err := <-refreshed; err != nil {
		t.Errorf("when it is ready: %v", err)
	}
	// So is one that cannot ask who the client is.
	unknown.Store(true)
	go func() { refreshed <- s.Refresh(t.Context()) }()
	select {
	case err := <-refreshed:
		t.Fatalf("while it does not know the client: %v", err)
	case <-time.After(time.Second):
	}
	unknown.Store(false)
	if err := <-refreshed; err != nil || s.Err() != nil {
		t.Errorf("when it knows the client again: %v, %v", err, s.Err())
	}
	// What a policy refuses stays refused, although the same verb is allowed elsewhere.
	policy := `admission webhook "p" denied the request: this field cannot be changed`
	says.Store(&policy)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := s.Refresh(ctx); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("what a policy refuses: %v, want ErrDenied", err)
	}
	says.Store(nil)
	b.Close()
	// And so for a client that begins meanwhile.
	begins, err := New(cfg, &Options{Namespace: "default", TTL: 10 * time.Second, ConnectTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer begins.Close()
	refusals.Store(3)
	if _, err := begins.Session(t.Context()); err != nil {
		t.Errorf("a session that is opened meanwhile: %v", err)
	}
	if n := refusals.Load(); n > 0 {
		t.Errorf("it was to be refused %d times more", n)
	}
}

// Which rights are needed is said where one is missing, and not where something else is refused.
func TestHintOnRights(t *testing.T) {
	for message, hint := range map[string]bool{
		`leases.coordination.k8s.io is forbidden: User "u" cannot list resource "leases" in API group "coordination.k8s.io" in the namespace "n"`: true,
		`leases.coordination.k8s.io "x" is forbidden: exceeded quota: leases, requested: count/leases=1, used: 9, limited: 9`:                     false,
		`admission webhook "p" denied the request: no`: false,
		`leases.coordination.k8s.io "x" is forbidden: unable to create new content in namespace n because it is being terminated`: false,
	} {
		err := (&status{Kind: "Status", Code: http.StatusForbidden, Reason: "Forbidden", Message: message}).err(0)
		if !errors.Is(err, backend.ErrDenied) || strings.Contains(err.Error(), kit.RightsHint) != hint {
			t.Errorf("%s: %v", message, err)
		}
	}
}

// Who is told that there is no such object may do what was asked, as after a success: a refusal from before is forgotten.
func TestMissingIsAllowed(t *testing.T) {
	answers := []int{http.StatusForbidden, http.StatusNotFound}
	cfg := fake(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(answers[0])
		_ = json.NewEncoder(w).Encode(status{Kind: "Status", Code: answers[0], Message: `User "u" cannot delete resource "leases"`})
		answers = answers[1:]
	})
	b, err := New(cfg, &Options{Namespace: "default"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for range 2 {
		_ = b.wire.remove(t.Context(), time.Minute, "x", "", "")
	}
	if _, still := b.wire.refused["delete"]; still || !b.wire.granted["delete"] {
		t.Errorf("refused %v, granted %v", b.wire.refused, b.wire.granted)
	}
}

// A transport that would not be used is refused.
func TestTransportOfTheCaller(t *testing.T) {
	if _, err := New(&rest.Config{Host: "https://h", Transport: http.DefaultTransport}, &Options{Namespace: "default"}); !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), "WrapTransport") {
		t.Errorf("with a Transport: %v", err)
	}
}

// A connection to what accepts it and says nothing is given up, although nobody waits for it any more.
func TestSilentHandshake(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const ttl = 2 * time.Second
	b, err := New(&rest.Config{Host: "https://" + l.Addr().String(), TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, &Options{Namespace: "default", TTL: ttl, ConnectTimeout: ttl})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, err := b.Session(ctx); ended <- err }()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	cancel()
	<-ended
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Errorf("the connection is not closed: %v", err)
	}
}

// What is no API server, or one that will not do, is told apart from one that cannot be reached.
func TestStrangeServers(t *testing.T) {
	version := func(minor string) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/version" {
				return false
			}
			w.Write([]byte(`{"major":"1","minor":"` + minor + `","gitVersion":"v1.` + minor + `.0"}`))
			return true
		}
	}
	good := version("37")
	for name, tt := range map[string]struct {
		handle http.HandlerFunc
		is     error
		says   string
	}{
		"old": {func(w http.ResponseWriter, r *http.Request) { version("30")(w, r) }, backend.ErrInvalid, "v1.30.0 is older than 1.31"},
		"a website": {func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("<html>hello</html>")) },
			backend.ErrUnavailable, "not that of a Kubernetes API server"},
		"a login": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://login.example/", http.StatusFound)
		},
			backend.ErrUnavailable, "302"},
		"no version": {func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(`{}`)) }, backend.ErrUnavailable, "its version is"},
		"no namespace": {func(w http.ResponseWriter, r *http.Request) {
			if !good(w, r) {
				w.WriteHeader(http.StatusNotFound)
				w.Write([]byte(`{"kind":"Status","code":404,"reason":"NotFound","message":"namespaces \"default\" not found"}`))
			}
		}, backend.ErrInvalid, `namespace "default"`},
		"an empty object": {func(w http.ResponseWriter, r *http.Request) {
			if !good(w, r) {
				w.Write([]byte(`{}`))
			}
		}, backend.ErrUnavailable, "without name or UID"},
		"a version that is no number": {func(w http.ResponseWriter, r *http.Request) {
			if !good(w, r) {
				w.Write([]byte(`{"metadata":{"name":"x","uid":"u","resourceVersion":"abc"}}`))
			}
		}, backend.ErrUnavailable, "is no number"},
		"half an answer": {func(w http.ResponseWriter, r *http.Request) {
			if !good(w, r) {
				w.Write([]byte(`{"metadata":{"na`))
			}
		}, backend.ErrUnavailable, "unexpected end of JSON"},
		"full": {func(w http.ResponseWriter, r *http.Request) {
			if !good(w, r) {
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusTooManyRequests)
				w.Write([]byte(`{"kind":"Status","code":429,"reason":"TooManyRequests","message":"too many"}`))
			}
		}, backend.ErrUnavailable, "too many"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			watch := calm.Start(t)
			err := sessionOf(t, fake(t, tt.handle), time.Second)
			if (!errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says)) && !watch.NotJudged(time.Second/2, "%v", err) {
				t.Errorf("%v\nwant %v that says %q", err, tt.is, tt.says)
			}
		})
	}
}

// A request that the server has refused because it is busy is sent again, and one whose token was just replaced, too.
func TestSentAgain(t *testing.T) {
	for name, code := range map[string]int{"busy": http.StatusTooManyRequests, "token": http.StatusUnauthorized} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var posts atomic.Int64
			cfg := fake(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/version":
					w.Write([]byte(`{"major":"1","minor":"37"}`))
				case r.Method == http.MethodPost && posts.Add(1) == 1:
					w.Header().Set("Retry-After", "0")
					w.WriteHeader(code)
				case r.Method == http.MethodPost:
					var o object
					_ = json.NewDecoder(r.Body).Decode(&o)
					o.Metadata.UID, o.Metadata.ResourceVersion = "u", "7"
					_ = json.NewEncoder(w).Encode(o)
				case r.Method == http.MethodDelete:
					deleted(w, r)
				default:
					<-r.Context().Done()
				}
			})
			if err := sessionOf(t, cfg, time.Minute); err != nil || posts.Load() != 2 {
				t.Errorf("%v after %d requests", err, posts.Load())
			}
		})
	}
}
