package connect

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/cmd/succession/internal/connect/probe"
)

const (
	// probeAfter is when we begin to find out why the coordinator does not answer, and
	// probeBound how long that takes where servers do not answer.
	probeAfter = time.Second
	probeBound = 2 * time.Second

	// probeGrace is how long it may go on when opening has failed.
	probeGrace = 400 * time.Millisecond
)

// diagnosis begins, after probeAfter, to look at what is at the servers of u. The caller
// must call the func that it returns, which ends the search. Where the result is wanted,
// the func returns what explains the failure, or "" if nothing does.
func diagnosis(ctx context.Context, u *coordinator.URL) func(wanted bool) string {
	addrs := Servers(u)
	if len(addrs) == 0 {
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
		result <- lookAt(ctx, u, addrs)
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

// Explain says what is at the servers of a URL instead of its coordinator, or "" if nobody can tell. It blocks for two seconds at most.
func Explain(ctx context.Context, url string) string {
	u, err := parse(url)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, probeBound)
	defer cancel()
	if addrs := Servers(u); len(addrs) > 0 {
		return lookAt(ctx, u, addrs)
	}
	return ""
}

// lookAt says what is at the servers of u; "" where one of them is as the URL says.
func lookAt(ctx context.Context, u *coordinator.URL, addrs []string) string {
	d, err := coordinator.DefaultMux.Driver(u)
	if err != nil {
		return ""
	}
	found := make([]probe.Finding, len(addrs))
	var wg sync.WaitGroup
	for i, addr := range addrs {
		wg.Go(func() { found[i] = probe.Look(ctx, addr) })
	}
	wg.Wait()
	var parts []string
	for i, addr := range addrs {
		part := explain(d, AsksForTLS(u), addr, found[i])
		if part == "" {
			return ""
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// explain says what is wrong with addr as a server of the driver's coordinator; "" if nothing is, or nobody can
// tell.
func explain(d coordinator.Driver, withTLS bool, addr string, found probe.Finding) string {
	want := d.Title
	host, port, _ := net.SplitHostPort(addr)
	switch kind := found.Kind; {
	case kind == probe.Refused:
		return fmt.Sprintf("nothing listens on port %s of %s; is %s up, and the port right?", port, host, want)
	case kind == probe.Unknown:
		return fmt.Sprintf("there is no host called %s", host)
	case kind == probe.Unreachable:
		return fmt.Sprintf("no connection to %s comes about; is the address right, and does a firewall let it through?", addr)
	case kind == probe.TLS && withTLS:
		return ""
	case kind == probe.TLS && d.TLS == nil:
		return fmt.Sprintf("%s speaks TLS from the first byte on, which the driver of %s does not", addr, want)
	case kind == probe.TLS:
		return addr + " speaks TLS; add tls=on to the URL"
	case withTLS && kind != probe.Other && kind != probe.Silent:
		return fmt.Sprintf("%s does not speak TLS, which the URL asks for", addr)
	case kind == probe.Coordinator && found.Driver.Scheme == d.Scheme:
		return ""
	case kind == probe.Coordinator:
		return fmt.Sprintf("%s is %s, not %s; write %s://%[1]s", addr, found.Driver.Title, want, found.Driver.Scheme)
	case d.Probe.Ask == "": // it could be one
		return ""
	case kind == probe.Silent:
		return fmt.Sprintf("%s accepts connections and does not answer; is it stuck, or something else than %s?", addr, want)
	case kind == probe.HTTP:
		return fmt.Sprintf("%s is an HTTP server, not %s; is the port right?", addr, want)
	}
	return fmt.Sprintf("%s does not answer as %s does; is the port right?", addr, want)
}
