//go:build unix

package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/door"
	"github.com/succession-dev/succession/cmd/succession/internal/host"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/metrics"
	"github.com/succession-dev/succession/metrics/health"
)

// A server answers probes and Prometheus, for --serve.
type server struct {
	name, id string
	recorder *metrics.Recorder
	live     *health.Live
	ready    *health.Ready
	term     atomic.Pointer[elect.Term] // the newest; it may have ended

	listener net.Listener
	http     http.Server
	working  sync.WaitGroup
	ctx      context.Context // ends with close
	cancel   context.CancelFunc
}

// newServer listens on the address of --serve, and answers until close. So an address that is
// taken is an error before anybody stands in line.
func newServer(o runOptions, name string) (*server, error) {
	addr, err := serveAddr(o.serve)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("--serve %s: somebody else listens there; give another port", o.serve)
	case err != nil:
		return nil, fmt.Errorf("--serve %s: %w", o.serve, err)
	}
	s := &server{
		name: name, id: o.id, listener: l, recorder: metrics.New(nil),
		// The command may take the grace time to stop.
		live:  health.NewLive(health.DefaultLimit + o.grace),
		ready: health.NewReady(),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	mux := http.NewServeMux()
	mux.Handle("/live", s.live)
	mux.Handle("/ready", s.ready)
	mux.Handle("/leader", health.Leader(s))
	mux.Handle("/metrics", s.recorder)
	s.http = http.Server{
		Handler: ownHosts(mux), ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0), // standard error is for the messages, and may block
	}
	s.working.Go(func() { door.Serve(&s.http, l, fmt.Sprintf("%d connections are open already", door.Most), "/live") })
	return s, nil
}

// ownHosts refuses what comes to a loopback address under a name that is not this machine's: a page of another site reads it,
// whose name points here. At an address that other machines reach, they may call this one as they like.
func ownHosts(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host.Local(r).IsLoopback() && !host.IsHere(r) {
			http.Error(w, "this server is not called so: ask it at the address that it listens on, or at localhost", http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// serveAddr returns where to listen. Without a host that is on the loopback interface: who is to
// be heard elsewhere is named.
func serveAddr(asked string) (string, error) {
	port := asked
	if host, p, err := net.SplitHostPort(asked); err == nil {
		if host != "" {
			return asked, nil
		}
		port = p
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("--serve %q is no address; give a port, such as 8071, to listen on this machine alone, or an address and a port, such as 0.0.0.0:8071", asked)
	}
	return net.JoinHostPort("127.0.0.1", port), nil
}

// ID and Term make s a [health.Candidate].
func (s *server) ID() string        { return s.id }
func (s *server) Term() *elect.Term { return s.term.Load() }

// trace returns what is to hear of the steps of the campaigns.
func (s *server) trace() func(trace.Event) {
	return trace.Tee(trace.Named(s.name, s.recorder.Trace), s.live.Trace, s.ready.Trace)
}

// follow has the series tell the phase of the migration, if b is one, until close.
func (s *server) follow(b backend.Backend) {
	if m, ok := b.(metrics.Migration); ok {
		s.working.Go(func() { s.recorder.FollowMigration(s.ctx, m, s.name, 0) })
	}
}

func (s *server) close() {
	s.cancel()
	s.http.Close()
	s.working.Wait()
}

// serve starts the server, if --serve asks for one.
func (r *runner) serve() (err error) {
	if r.o.serve == "" {
		return nil
	}
	if r.server, err = newServer(r.o, r.name); err != nil {
		return err
	}
	// It wants to stand in line from now until it ends, also while it opens the coordinator or a session, and between two terms.
	r.server.trace()(trace.Event{Election: r.name, Recipe: r.o.right.recipe, Kind: trace.Started})
	addr := r.server.listener.Addr().String()
	r.report.info("serving", fmt.Sprintf("serving /live, /ready, /leader and /metrics on http://%s", addr), slog.String("address", addr))
	return nil
}
