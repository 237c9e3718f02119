// Clientgo is candidates of client-go's leaderelection on Leases of a Kubernetes API server, and of this project there, as
// package candidate describes them. It is a program and a module of its own: client-go is seven
// hundred packages, which only those compile who measure it. Package candidate builds it.
package main

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/succession-dev/succession/bench/internal/candidate"
	"github.com/succession-dev/succession/bench/internal/leases"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/kubernetes"
)

func main() {
	if !candidate.Is(os.Args) {
		fmt.Fprintln(os.Stderr, "clientgo: this is a process of candidates, which go run -C bench ./faults and ./costs start")
		os.Exit(2)
	}
	os.Exit(candidate.Main(os.Args, connect))
}

// A process is the candidates of one process.
type process struct {
	candidate.Settings
	config  rest.Config
	entered atomic.Int64 // candidates, whose identities must differ
}

func connect(ctx context.Context, s candidate.Settings) (func(string) candidate.Elector, error) {
	config := rest.Config{
		Host:        "https://" + s.Addresses[0],
		BearerToken: coordtest.KubernetesToken,
		// The server has made its certificate itself, for this run.
		TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	}
	switch s.Library.Name {
	case candidate.Ours:
		return ours(ctx, s, &config, "")
	case candidate.AsClientGo:
		return ours(ctx, s, &config, kubernetes.ClientGo)
	}
	p := &process{Settings: s, config: config}
	return func(election string) candidate.Elector {
		id := fmt.Sprint(s.ID, "-", p.entered.Add(1))
		return func(ctx context.Context) (candidate.Term, error) { return p.elect(ctx, election, id) }
	}, nil
}

// ours elects with this project.
func ours(ctx context.Context, s candidate.Settings, config *rest.Config, as kubernetes.Format) (func(string) candidate.Elector, error) {
	b, err := kubernetes.New(config, &kubernetes.Options{Namespace: leases.Namespace, TTL: s.Session, As: as})
	if err != nil {
		return nil, err
	}
	if _, err := b.Session(ctx); err != nil {
		return nil, err
	}
	return candidate.Succession(b, s), nil
}

// elect stands with a client of its own, as a process would that has one candidate: a client of
// client-go sends five requests a second and no more. All share a connection.
//
// The documentation says of ReleaseOnCancel that "all code guarded by this lease" must have
// completed before the context is cancelled, so work ends first, and that OnStartedLeading is
// called with the context that ends with the term.
func (p *process) elect(ctx context.Context, election, id string) (candidate.Term, error) {
	// The proportions of client-go's defaults: 15 s, 10 s and 2 s.
	duration, deadline, retry := p.Session, p.Session*10/15, p.Session*2/15
	lock, err := p.lock(election, id, deadline)
	if err != nil {
		return candidate.Term{}, err
	}
	started := make(chan context.Context, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: duration, RenewDeadline: deadline, RetryPeriod: retry,
		ReleaseOnCancel: p.Library.Name != clientGoDefaults,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) { started <- leading },
			OnStoppedLeading: func() {}, // comes last, when the context of the term has ended
		},
	})
	if err != nil {
		return candidate.Term{}, err
	}
	standing, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(standing)
	}()
	var leading context.Context
	select {
	case leading = <-started:
	case <-ctx.Done():
		cancel()
		<-ended
		return candidate.Term{}, context.Cause(ctx)
	}
	return candidate.Term{
		Leads: func() bool { return leading.Err() == nil },
		// A release that failed is not reported: the Lease then runs out.
		Release: func(bool) error {
			cancel()
			<-ended
			return nil
		},
	}, nil
}

// clientGoDefaults is the name of what has client-go's defaults.
const clientGoDefaults = "client-go leaderelection"

// lock makes the lock in one of the two ways that client-go shows: NewFromKubeconfig, which gives
// each request half of the deadline, and its example program, whose requests have no timeout.
func (p *process) lock(election, id string, deadline time.Duration) (resourcelock.Interface, error) {
	identity := resourcelock.ResourceLockConfig{Identity: id}
	if p.Library.Name != candidate.NoTimeout {
		return resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, leases.Namespace, election, identity, &p.config, deadline)
	}
	client, err := coordinationv1.NewForConfig(&p.config)
	if err != nil {
		return nil, err
	}
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: leases.Namespace, Name: election},
		Client:     client,
		LockConfig: identity,
	}, nil
}
