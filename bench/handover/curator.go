package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// curatorLine keeps all candidates in one process of Java, where they share a connection. The
// times are those that the process itself has taken.
func curatorLine(ctx context.Context, addr, election string) (*line, error) {
	conn, _, err := zk.Connect([]string{addr}, session, zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "handover-")
	if err != nil {
		return nil, err
	}
	events := make(chan coordtest.PeerEvent)
	peer, err := coordtest.StartPeer(coordtest.PeerOptions{
		Kind: coordtest.PeerCuratorMutex, Address: addr, Path: "/" + election, ID: "curator", Session: session, Events: events, Dir: dir,
	})
	if err != nil {
		return nil, err
	}
	ctx, fail := context.WithCancelCause(ctx)
	said := make(map[string]chan time.Time)
	for _, what := range []string{"ready", "elected", "leaving", "left"} {
		said[what] = make(chan time.Time, 1)
	}
	go func() {
		for e := range events {
			c, known := said[e.What]
			if !known {
				fail(fmt.Errorf("it said %s", e.What))
			}
			select {
			case c <- e.At:
			case <-ctx.Done():
			}
		}
	}()
	hears := func(what string) (time.Time, error) {
		select {
		case at := <-said[what]:
			return at, nil
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		}
	}
	n := 0
	l := &line{
		// Whoever is elected, and whoever leaves, is the first in line: it does not matter
		// which candidate here stands for it.
		stand: func(context.Context) (candidate, error) {
			n++
			return candidate{
				campaign: func() (time.Time, error) { return hears("elected") },
				joined:   func() error { return joins(ctx, conn, election, n) },
				resign: func() (time.Time, error) {
					if err := peer.Send("leave"); err != nil {
						return time.Time{}, err
					}
					begun, err := hears("leaving")
					if err == nil {
						_, err = hears("left")
					}
					return begun, err
				},
			}, peer.Send("join")
		},
		close: func() {
			fail(context.Canceled)
			peer.Kill()
			close(events)
			conn.Close()
			os.RemoveAll(dir)
		},
	}
	if _, err := hears("ready"); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}
