package consul_test

import (
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// Of two addresses of a name, the first accepts connections and stays silent. A process that starts
// connects, and so does one whose connections break, in time for its session.
func TestSilentAddress(t *testing.T) {
	t.Parallel()
	const ttl = 2 * ttl
	front := coordtest.NewProxy(t, server(t))
	_, port, err := net.SplitHostPort(front.Addr())
	if err != nil {
		t.Fatal(err)
	}
	silent, err := net.Listen("tcp", net.JoinHostPort("127.0.0.2", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	consul.Names.Store("silent-address.test", []string{"127.0.0.2", "127.0.0.1"})
	b, err := succession.Connect(t.Context(), "consul://silent-address.test:"+port+"?ttl="+ttl.String())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	s, name := sessionOf(t, b), coordtest.Name(t)
	m := join(t, s, name, "")
	w := watchPlace(t, s, m)
	for range 3 {
		watch := calm.Start(t)
		front.Reset()
		broken := time.Now()
		for !s.Deadline().After(broken.Add(ttl)) { // a renewal was sent since
			select {
			case <-time.After(ttl / 100):
			case <-s.Done():
				if !watch.NotJudged(ttl/3, "%v", s.Err()) {
					t.Fatal(s.Err())
				}
				return
			}
		}
		t.Logf("renewed %v after the connections broke", time.Since(broken).Round(time.Millisecond))
		if p, err := s.Ahead(t.Context(), m); err != nil || !p.First {
			t.Fatalf("it stands at %+v, %v", p, err)
		}
	}
	if err := s.Leave(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.returns(t, ttl)
}

// An agent that has lost the servers answers on, at once or after it has held the request for a while. At the same name there is
// another agent, and that is found, in time for the session, by all that is asked.
func TestSickAgent(t *testing.T) {
	t.Parallel()
	const ttl = 2 * ttl
	addr := server(t)
	for name, hold := range map[string]time.Duration{"at-once": 0, "held": ttl / 2} {
		for _, scheme := range []string{"http", "https"} {
			t.Run(name+" "+scheme, func(t *testing.T) {
				t.Parallel()
				var sick atomic.Value // the host of the agent that is sick
				sick.Store("")
				var under atomic.Int64         // queries under way at the first agent, from before it was sick
				arrived := make(chan int64, 1) // how many those were when the second agent was asked
				const asked = "/asked"         // the name of a record, of which the query asks
				agent := func(host string) *httptest.Server {
					forward := &httputil.ReverseProxy{
						Rewrite:  func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: addr}) },
						ErrorLog: log.New(io.Discard, "", 0),
					}
					s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if sick.Load() != host {
							switch {
							case !r.URL.Query().Has("index"):
							case host == "127.0.0.1":
								under.Add(1)
								defer under.Add(-1)
							case strings.HasSuffix(r.URL.Path, asked):
								select {
								case arrived <- under.Load():
								default:
								}
							}
							forward.ServeHTTP(w, r)
							return
						}
						select {
						case <-time.After(hold):
						case <-r.Context().Done():
						}
						http.Error(w, "No cluster leader", http.StatusInternalServerError)
					}))
					s.EnableHTTP2 = true
					return s
				}
				one, two := agent("127.0.0.1"), agent("127.0.0.2")
				_, port, err := net.SplitHostPort(one.Listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				if err := two.Listener.Close(); err != nil {
					t.Fatal(err)
				}
				if two.Listener, err = net.Listen("tcp", net.JoinHostPort("127.0.0.2", port)); err != nil {
					t.Fatal(err)
				}
				host := "sick-agent-" + name + "-" + scheme + ".test"
				consul.Names.Store(host, []string{"127.0.0.1", "127.0.0.2"})
				at := "consul://" + host + ":" + port + "?connect=1m&ttl=" + ttl.String()
				start := (*httptest.Server).Start
				if scheme == "https" {
					start = (*httptest.Server).StartTLS
				}
				for _, s := range []*httptest.Server{one, two} {
					start(s)
					t.Cleanup(s.Close)
				}
				if scheme == "https" {
					ca := filepath.Join(t.TempDir(), "ca")
					cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: one.Certificate().Raw})
					if err := os.WriteFile(ca, cert, 0o600); err != nil {
						t.Fatal(err)
					}
					at += "&server-name=127.0.0.1&ca-file=" + ca
				}
				b, err := succession.Connect(t.Context(), at)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { b.Close() })
				s := sessionOf(t, b)
				m := join(t, s, coordtest.Name(t), "")
				w := watchPlace(t, s, m)
				for began := within(t, time.Minute); under.Load() < 2; time.Sleep(time.Millisecond) { // for the member, and for the header
					if began.Err() != nil {
						t.Fatal("the first agent has no queries under way")
					}
				}

				watch := calm.Start(t)
				sick.Store("127.0.0.1")
				go s.Watch(t.Context(), m.Line+asked, backend.Absent)
				for until := time.Now().Add(ttl); !s.Deadline().After(until.Add(ttl)); { // a renewal was sent after a whole session time
					select {
					case <-time.After(ttl / 100):
					case <-s.Done():
						if !watch.NotJudged(ttl/4, "%v", s.Err()) {
							t.Fatal(s.Err())
						}
						return
					}
				}
				// Over HTTP/2 it would share the connection with those that are under way.
				select {
				case n := <-arrived:
					if n == 0 && !watch.NotJudged(ttl/4, "no query was under way") {
						t.Error("a query left the sick agent only when no other was under way there")
					}
				case <-within(t, time.Minute).Done():
					t.Error("no query has left the sick agent")
				}
				if p, err := s.Ahead(within(t, time.Minute), m); err != nil || !p.First {
					t.Errorf("it stands at %+v, %v", p, err)
				}
				if err := s.Leave(t.Context(), m); err != nil {
					t.Fatal(err)
				}
				w.returns(t, ttl)
			})
		}
	}
}
