// Fenced is a writer that is deposed, and whose last write arrives too late. The store refuses it,
// because it has seen the token of the next leader.
//
//	go run ./examples/fenced
//	go run ./examples/fenced -url etcd://localhost:2379
//
// Two writers are processes of this program. The one that leads sends a write that the network holds
// up, and is killed. The other leads, and writes. Then the old write arrives.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/succession-dev/succession"
	_ "github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/elect"
	_ "github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/examples/internal/child"
	"github.com/succession-dev/succession/fence"
	_ "github.com/succession-dev/succession/local"
	_ "github.com/succession-dev/succession/zookeeper"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	url := flag.String("url", "", "the coordinator, such as etcd://localhost:2379; empty is a temporary folder of this machine")
	id := flag.String("writer", "", "used by the run itself: be the writer with this ID")
	store := flag.String("store", "", "used by the run itself: where the store is")
	flag.Parse()
	var err error
	if *id != "" {
		err = write(ctx, *url, *id, *store)
	} else {
		err = run(ctx, os.Stdout, *url)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fenced:", err)
		os.Exit(1)
	}
}

// write is a writer: while it leads it puts its report into the store, with the token of its term.
func write(ctx context.Context, url, id, store string) error {
	ctx, cancel := child.Context(ctx)
	defer cancel()
	b, err := succession.Open(url)
	if err != nil {
		return err
	}
	defer b.Close()
	err = elect.New(b, "fenced", &elect.Options{ID: id}).Run(ctx, func(ctx context.Context, t *elect.Term) error {
		client := http.Client{Transport: &fence.Transport{Term: t}}
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, store, strings.NewReader("report of "+id))
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		resp.Body.Close()
		return fence.Refused(resp) // deposed: stop
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// A store keeps one report. Fence it as run does.
type store struct{ report string }

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		fence.Error(w, err)
		return
	}
	s.report = string(body) // no lock: fence.Handler lets one in at a time
}

// run is the whole example. It fails if the old write is not refused.
func run(ctx context.Context, out io.Writer, url string) error {
	url, remove, err := child.URL(url)
	if err != nil {
		return err
	}
	defer remove()
	b, err := succession.Connect(ctx, url) // if it is not there, nobody would send the writes that run waits for
	if err != nil {
		return err
	}
	b.Close()

	var s store
	fenced := fence.Handler(new(fence.Checker), nil, &s)
	held, done := make(chan *http.Request, 1), make(chan struct{}, 1)
	network := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			body, _ := io.ReadAll(r.Body)
			late := r.Clone(context.WithoutCancel(r.Context())) // it arrives although its sender is gone
			late.Body = io.NopCloser(bytes.NewReader(body))
			held <- late
			<-r.Context().Done()
			return
		}
		fenced.ServeHTTP(w, r)
		done <- struct{}{}
	}))
	defer network.Close()
	start := func(id, path string) (*child.Process, error) {
		p := &child.Process{ID: id, Args: []string{"-writer", id, "-store", network.URL + path, "-url", url}, Out: os.Stderr}
		return p, p.Start()
	}

	first, err := start("writer-1", "/slow")
	if err != nil {
		return err
	}
	var late *http.Request
	select {
	case late = <-held:
	case <-ctx.Done():
		first.Crash()
		return context.Cause(ctx)
	}
	first.Crash()
	fmt.Fprintln(out, "writer-1 leads and sends its report, which is held up on its way; it is killed")

	second, err := start("writer-2", "/")
	if err != nil {
		return err
	}
	defer second.Stop()
	select {
	case <-done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	fmt.Fprintf(out, "writer-2 leads; the store has the %s\n", s.report)

	answer := httptest.NewRecorder()
	fenced.ServeHTTP(answer, late)
	fmt.Fprintf(out, "the report of writer-1 arrives, and the store answers %d: %s", answer.Code, answer.Body)
	fmt.Fprintf(out, "the store has the %s\n", s.report)
	if answer.Code != http.StatusPreconditionFailed || s.report != "report of writer-2" {
		return errors.New("an old write has overwritten a new one")
	}
	return nil
}
