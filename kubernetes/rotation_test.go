package kubernetes

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/certs"
)

// Nothing is sent, no token either, to a server whose certificate has another name, or is of another authority.
func TestCertificates(t *testing.T) {
	ca := certs.New(t, "authority")
	good, wrong := ca.Sign(t, "server", "127.0.0.1"), ca.Sign(t, "server", "192.0.2.1", "other.example")
	for name, tt := range map[string]struct {
		server *certs.Certificate
		tls    rest.TLSClientConfig
		says   string // empty: it is good
	}{
		"its own":                     {good, rest.TLSClientConfig{CAFile: ca.File}, ""},
		"another name":                {wrong, rest.TLSClientConfig{CAFile: ca.File}, "valid for 192.0.2.1, not 127.0.0.1"},
		"another name, which is told": {wrong, rest.TLSClientConfig{CAFile: ca.File, ServerName: "other.example"}, ""},
		"another authority":           {good, rest.TLSClientConfig{CAFile: certs.New(t, "authority").File}, "unknown authority"},
		"no authority that is known":  {good, rest.TLSClientConfig{}, "unknown authority"},
		"none that signs itself":      {certs.New(t, "server", "127.0.0.1"), rest.TLSClientConfig{CAFile: ca.File}, "unknown authority"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pair, err := tls.LoadX509KeyPair(tt.server.File, tt.server.KeyFile)
			if err != nil {
				t.Fatal(err)
			}
			var requests atomic.Int64
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				w.Write([]byte(`{"major":"1","minor":"30","gitVersion":"v1.30.0"}`))
			}))
			s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			s.StartTLS()
			defer s.Close()
			connect := time.Minute
			if tt.says != "" {
				connect = time.Second // it tries for that long
			}
			watch := calm.Start(t)
			err = sessionOf(t, &rest.Config{Host: s.URL, BearerToken: "secret", TLSClientConfig: tt.tls}, connect)
			switch {
			case requests.Load() == 0 && !strings.Contains(fmt.Sprint(err), tt.says) && watch.NotJudged(connect/2, "%v", err):
			case tt.says == "" && (requests.Load() == 0 || !strings.Contains(fmt.Sprint(err), "v1.30.0 is older")):
				t.Errorf("%d requests: %v\nwant it to be too old", requests.Load(), err)
			case tt.says != "" && (requests.Load() > 0 || !strings.Contains(fmt.Sprint(err), tt.says)):
				t.Errorf("%d requests: %v\nwant none, and that it says %q", requests.Load(), err, tt.says)
			}
		})
	}
}

// replace writes a file whose readers see the old text or the new one.
func replace(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// keeper is a server that has what is created, and says so; answer, if it returns true, has answered a request instead.
func keeper(answer func(w http.ResponseWriter, r *http.Request) bool) http.Handler {
	var version atomic.Int64
	version.Store(7)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer(w, r) {
			return
		}
		o := &object{Metadata: meta{Name: r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:], UID: "u"}}
		switch r.Method {
		case http.MethodPost:
			_ = json.NewDecoder(r.Body).Decode(o)
			o.Metadata.UID = "u"
		case http.MethodGet:
			if r.URL.Path == "/version" {
				w.Write([]byte(`{"major":"1","minor":"37"}`))
			} else if r.URL.Query().Has("watch") {
				<-r.Context().Done()
			} else {
				w.Write([]byte(`{"metadata":{"resourceVersion":"` + strconv.FormatInt(version.Load(), 10) + `"},"items":[]}`))
			}
			return
		}
		o.Metadata.ResourceVersion = strconv.FormatInt(version.Add(1), 10)
		_ = json.NewEncoder(w).Encode(o)
	})
}

// So it does when the certificate of the client is replaced, and the server then refuses what comes over a connection with the old one.
func TestClientCertificateRotation(t *testing.T) {
	t.Parallel()
	dir, ca := t.TempDir(), certs.New(t, "authority")
	certFile, keyFile := filepath.Join(dir, "client.crt"), filepath.Join(dir, "client.key")
	var now atomic.Value // the certificate that the server accepts
	use := func(c *certs.Certificate) {
		t.Helper()
		for file, from := range map[string]string{certFile: c.File, keyFile: c.KeyFile} {
			text, err := os.ReadFile(from)
			if err != nil {
				t.Fatal(err)
			}
			replace(t, file, string(text))
		}
		pair, err := tls.LoadX509KeyPair(c.File, c.KeyFile)
		if err != nil {
			t.Fatal(err)
		}
		now.Store(string(pair.Certificate[0]))
	}
	var refused atomic.Int64
	s := httptest.NewUnstartedServer(keeper(func(w http.ResponseWriter, r *http.Request) bool {
		if string(r.TLS.PeerCertificates[0].Raw) == now.Load().(string) {
			return false
		}
		refused.Add(1)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}))
	s.EnableHTTP2, s.TLS = true, &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	s.StartTLS()
	defer s.Close()
	use(ca.Sign(t, "client"))
	b, err := New(&rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{CertFile: certFile, KeyFile: keyFile, Insecure: true}}, &Options{Namespace: "default", TTL: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	live, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		use(ca.Sign(t, "client"))
		before := refused.Load()
		if err := live.Refresh(t.Context()); err != nil {
			t.Fatalf("when the certificate was replaced: %v", err)
		}
		if refused.Load() == before {
			t.Error("the certificate before was not refused")
		}
	}
}

// A session finds another API server behind the same address if the one that it is connected to answers, but cannot do anything.
func TestSickServer(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string]bool{"answers": true, "is silent": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sickServer(t, answers)
		})
	}
}

func sickServer(t *testing.T, answers bool) {
	var sick atomic.Value // the address of the client's connection to a server that has lost its etcd
	var at atomic.Value
	s := httptest.NewUnstartedServer(keeper(func(w http.ResponseWriter, r *http.Request) bool {
		at.Store(r.RemoteAddr)
		if sick.Load() != r.RemoteAddr {
			return false
		}
		if answers {
			w.WriteHeader(http.StatusServiceUnavailable)
		} else {
			<-r.Context().Done() // it waits for its etcd, and answers pings
		}
		return true
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	const ttl = 4 * time.Second
	b, err := New(&rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, &Options{Namespace: "default", TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	live, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	beats := make(chan backend.Heartbeat, 100)
	t.Cleanup(live.TraceHeartbeats(func(h backend.Heartbeat) { beats <- h }))
	watch := calm.Start(t)
	sick.Store(at.Load())
	for range 8 { // two session times
		select {
		case <-beats:
		case <-live.Done():
			if !watch.NotJudged(ttl/4, "%v", live.Err()) {
				t.Error(live.Err())
			}
			return
		}
	}
}

// So does one that opens a session.
func TestSickServerAtFirst(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string]bool{"answers": true, "is silent": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sick atomic.Value // the address of the client's first connection
			s := httptest.NewUnstartedServer(keeper(func(w http.ResponseWriter, r *http.Request) bool {
				sick.CompareAndSwap(nil, r.RemoteAddr)
				if sick.Load() != r.RemoteAddr || r.Method == http.MethodGet {
					return false
				}
				if answers {
					w.WriteHeader(http.StatusServiceUnavailable)
				} else {
					<-r.Context().Done()
				}
				return true
			}))
			s.EnableHTTP2 = true
			s.StartTLS()
			defer s.Close()
			b, err := New(&rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, &Options{Namespace: "default", TTL: 4 * time.Second, ConnectTimeout: 6 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			if _, err := b.Session(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Requests that a webhook makes fail, while the session is renewed, end no connection.
func TestWebhookFails(t *testing.T) {
	t.Parallel()
	var fails atomic.Bool
	s := httptest.NewUnstartedServer(keeper(func(w http.ResponseWriter, r *http.Request) bool {
		if !fails.Load() || r.Method != http.MethodPost {
			return false
		}
		w.WriteHeader(http.StatusInternalServerError)
		return true
	}))
	var connections atomic.Int64
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	const ttl = 4 * time.Second
	b, err := New(&rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, &Options{Namespace: "default", TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	live, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := connections.Load()
	fails.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), ttl)
	defer cancel()
	if _, err := live.Join(ctx, "e", "", ""); err == nil {
		t.Fatal("the webhook lets members be created")
	}
	if n := connections.Load(); n != before {
		t.Errorf("%d more connections were made", n-before)
	}
}

// A session lives on when the token of its service account is replaced, and the authority of the server's certificate, and the server
// then accepts neither of the old ones.
func TestRotation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tokenFile, caFile := filepath.Join(dir, "token"), filepath.Join(dir, "ca.crt")
	write := func(path, text string) { replace(t, path, text) }
	var token atomic.Value
	var refused atomic.Int64
	s := httptest.NewUnstartedServer(keeper(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "Bearer "+token.Load().(string) {
			return false
		}
		refused.Add(1)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	token.Store("first")
	write(tokenFile, "first")
	write(caFile, ca)
	b, err := New(&rest.Config{Host: s.URL, BearerTokenFile: tokenFile, TLSClientConfig: rest.TLSClientConfig{CAFile: caFile}}, &Options{Namespace: "default", TTL: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	live, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	renewed := func(what string) {
		t.Helper()
		if err := live.Refresh(t.Context()); err != nil { // which renews it
			t.Fatalf("%s: %v", what, err)
		}
	}
	renewed("at first")
	write(tokenFile, "second")
	token.Store("second")
	renewed("when the token was replaced")
	if refused.Load() == 0 {
		t.Error("the first token was never refused")
	}
	// A file that has no good certificate is looked at when a connection is made, and not before.
	write(caFile, "nonsense")
	renewed("with a connection that was made before")
	write(caFile, ca)
	s.CloseClientConnections()
	renewed("with a connection that was made after")
}
