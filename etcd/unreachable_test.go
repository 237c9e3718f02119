package etcd_test

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// TestOpenWrongAddress opens addresses at which there is no etcd, or one that is to be
// spoken to in another way. With default settings, the error says within five seconds
// where it looked, and what it found there.
func TestOpenWrongAddress(t *testing.T) {
	t.Parallel()
	ca, cert, key := certificates(t)
	plain := sharedEtcd(t).Addrs()[0]
	secure := coordtest.NewEtcd(t, &coordtest.EtcdOptions{CertFile: cert, KeyFile: key}).Addrs()[0]
	silent := coordtest.NewProxy(t, plain)
	silent.Cut()
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	webTLS := httptest.NewUnstartedServer(http.NotFoundHandler())
	webTLS.Config.ErrorLog = log.New(io.Discard, "", 0)
	webTLS.StartTLS()
	t.Cleanup(webTLS.Close)

	tests := []struct{ what, addr, params, says string }{
		{"nobody listens", coordtest.Refused(t), "", "connection refused"},
		{"a server that is silent", silent.Addr(), "", "does not answer"},
		{"an HTTP server", strings.TrimPrefix(web.URL, "http://"), "", "not etcd"},
		{"TLS to an HTTP server", strings.TrimPrefix(webTLS.URL, "https://"), "?tls=on", "not etcd"},
		{"TLS to a plain port", plain, "?ca-file=" + ca, "does not speak TLS"},
		{"no TLS to a port that wants it", secure, "", "wants TLS"},
		{"an authority that is not known", secure, "?tls=on", "certificate signed by unknown authority"},
		{"a name that does not exist", "etcd.invalid:2379", "", "no such host"},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			t.Parallel()
			watch := calm.Start(t)
			_, err := succession.Connect(t.Context(), "etcd://"+tt.addr+tt.params)
			watch.Within(5*time.Second, "Open")
			if !errors.Is(err, backend.ErrUnavailable) {
				t.Fatalf("%v; want ErrUnavailable", err)
			}
			for _, want := range []string{tt.addr, tt.says} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q: %v", want, err)
				}
			}
			t.Log(err)
		})
	}
}
