package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/probe"
)

const (
	// openBound is how long the coordinator has to answer, where the URL does not
	// say. It leaves something of five seconds for saying why it did not.
	openBound = 4500 * time.Millisecond

	// probeAfter is when we begin to find out why it does not, and probeBound how
	// long that takes where servers do not answer.
	probeAfter = time.Second
	probeBound = 2 * time.Second

	// probeGrace is how long it may go on when opening has failed.
	probeGrace = 400 * time.Millisecond
)

// errNoAnswer is the cause of a context that openBound ended.
var errNoAnswer = errors.New("no answer")

// open is [backend.Open] with errors that say what is at the address instead.
func open(ctx context.Context, url string) (backend.Backend, error) {
	u, err := backend.ParseURL(url)
	if err != nil {
		return nil, err
	}
	if known := backend.DefaultMux.Schemes(); !slices.Contains(known, u.Scheme) {
		return nil, fmt.Errorf("%w URL %s: unknown scheme %q; known are %s", backend.ErrInvalid, u, u.Scheme, strings.Join(known, ", "))
	}
	begin := time.Now()
	opening, cancel := ctx, context.CancelFunc(func() {})
	if u.Text("connect", "") == "" {
		opening, cancel = context.WithTimeoutCause(ctx, openBound, errNoAnswer)
	}
	defer cancel()
	diagnose := diagnosis(ctx, u)
	b, err := backend.Open(opening, url)
	if !doubtful(err) {
		diagnose(false)
		return b, err
	}
	after := time.Since(begin).Round(100 * time.Millisecond)
	if why := diagnose(true); why != "" {
		within := ""
		if after > 0 {
			within = fmt.Sprintf(" within %v", after)
		}
		return nil, fmt.Errorf("%s: not reached%s: %s", u, within, why)
	}
	if errors.Is(err, errNoAnswer) {
		return nil, fmt.Errorf("%s: no answer within %v; is the coordinator up, and has it a quorum?", u, after)
	}
	return nil, err
}

// doubtful reports whether err may come from an address that is wrong: nobody has
// answered, or with something that was not understood.
func doubtful(err error) bool {
	if e := (*backend.Error)(nil); errors.As(err, &e) && e.Op == "session" && errors.Is(err, backend.ErrInvalid) {
		return true
	}
	return errors.Is(err, backend.ErrUnavailable) || errors.Is(err, errNoAnswer) || errors.Is(err, errTimeout)
}

// diagnosis begins, in a while, to find out what is at the servers of u. The func
// that it returns must be called: it ends that, and returns what was found where that
// is wanted; "" if it explains nothing.
func diagnosis(ctx context.Context, u *backend.URL) func(wanted bool) string {
	port, ok := map[string]string{"zookeeper": "2181", "etcd": "2379", "consul": "8500"}[u.Scheme]
	if !ok || len(u.Hosts) == 0 {
		return func(bool) string { return "" }
	}
	// It goes on when ctx is over: that is when its result is wanted.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeAfter+probeBound)
	begin := make(chan struct{})
	result := make(chan string, 1)
	go func() {
		select {
		case <-begin:
		case <-time.After(probeAfter):
		case <-ctx.Done():
			result <- ""
			return
		}
		result <- lookAt(ctx, u, u.HostPorts(port))
	}()
	return func(wanted bool) string {
		defer cancel()
		if wanted {
			close(begin)
			defer time.AfterFunc(probeGrace, cancel).Stop()
		} else {
			cancel()
		}
		return <-result
	}
}

// lookAt says what is at the servers of u; "" where one of them is what the URL says.
func lookAt(ctx context.Context, u *backend.URL, addrs []string) string {
	found := make([]probe.Kind, len(addrs))
	var wg sync.WaitGroup
	for i, addr := range addrs {
		wg.Go(func() { found[i] = probe.Look(ctx, addr) })
	}
	wg.Wait()
	var parts []string
	for i, addr := range addrs {
		part := explain(u, addr, found[i])
		if part == "" {
			return ""
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// titles are what people call the kinds of coordinators.
var titles = map[string]string{"zookeeper": "ZooKeeper", "etcd": "etcd", "consul": "Consul"}

// explain says what is wrong with addr as a server of u; "" if nothing is.
func explain(u *backend.URL, addr string, found probe.Kind) string {
	want := titles[u.Scheme]
	host, port, _ := net.SplitHostPort(addr)
	withTLS := u.Text("tls", "")+u.Text("ca-file", "")+u.Text("cert-file", "")+u.Text("server-name", "") != "" ||
		u.Scheme == "consul" && os.Getenv("CONSUL_HTTP_SSL") != ""
	switch {
	case found == probe.Refused:
		return fmt.Sprintf("nothing listens on port %s of %s; is %s up, and the port right?", port, host, want)
	case found == probe.Unknown:
		return fmt.Sprintf("there is no host called %s", host)
	case found == probe.Unreachable:
		return fmt.Sprintf("no connection to %s comes about; is the address right, and does a firewall let it through?", addr)
	case found == probe.Silent:
		return fmt.Sprintf("%s accepts connections and does not answer; is it stuck, or something else than %s?", addr, want)
	case found == probe.TLS && withTLS:
		return ""
	case found == probe.TLS:
		return addr + " speaks TLS; add tls=on to the URL"
	case withTLS && found != probe.Other:
		return fmt.Sprintf("%s does not speak TLS, which the URL asks for", addr)
	case string(found) == u.Scheme:
		return ""
	case titles[string(found)] != "":
		return fmt.Sprintf("%s is %s, not %s; write %s://%[1]s", addr, titles[string(found)], want, found)
	case found == probe.HTTP:
		return fmt.Sprintf("%s is an HTTP server, not %s; is the port right?", addr, want)
	}
	return fmt.Sprintf("%s does not answer as %s does; is the port right?", addr, want)
}
