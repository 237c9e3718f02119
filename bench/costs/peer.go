package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// A peer is the process of another library, which does one thing after the other.
type peer struct {
	*coordtest.Peer
	events <-chan coordtest.PeerEvent
}

// startPeer returns when the peer is ready. The caller kills it.
func startPeer(ctx context.Context, o coordtest.PeerOptions) (*peer, error) {
	events := make(chan coordtest.PeerEvent, 16)
	o.Events = events
	started, err := coordtest.StartPeer(o)
	if err != nil {
		return nil, err
	}
	p := &peer{started, events}
	if _, err := p.said(ctx, "ready"); err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

// does gives the peer a command, and waits until it says what. It returns how long that took.
func (p *peer) does(ctx context.Context, command, what string) (time.Duration, error) {
	begin := time.Now()
	if err := p.Send(command); err != nil {
		return 0, err
	}
	at, err := p.said(ctx, what)
	return at.Sub(begin), err
}

// said waits until the peer says what, and returns when it did.
func (p *peer) said(ctx context.Context, what string) (at time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		select {
		case e := <-p.events:
			switch {
			case e.What == what:
				return e.At, nil
			case strings.HasPrefix(e.What, "failed: "):
				return e.At, fmt.Errorf("%s; its log: %s", e.What, p.Log())
			}
		case <-ctx.Done():
			return time.Now(), fmt.Errorf("the peer has not said %q: %w; its log: %s", what, context.Cause(ctx), p.Log())
		}
	}
}
