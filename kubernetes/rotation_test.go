package kubernetes

import (
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
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

// A session lives on when the token of its service account is replaced, and the authority of the server's certificate, and the server
// then accepts neither of the old ones.
func TestRotation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tokenFile, caFile := filepath.Join(dir, "token"), filepath.Join(dir, "ca.crt")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	var token atomic.Value
	var version, refused atomic.Int64
	version.Store(7)
	handle := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token.Load().(string) {
			refused.Add(1)
			w.WriteHeader(http.StatusUnauthorized)
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
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(handle))
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
