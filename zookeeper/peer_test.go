package zookeeper_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// ourPeer makes the test binary one participant of an election: its value is the
// URL. Arguments are the election and the candidate's ID; the protocol is that of
// coordtest.Peer.
const ourPeer = "SUCCESSION_TEST_PEER"

// startOurs starts one participant of ours in a process of its own.
func startOurs(o coordtest.PeerOptions, url, election string) (*coordtest.Peer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return coordtest.StartPeerProcess(o, []string{"/usr/bin/env", ourPeer + "=" + url, self, election, o.ID})
}

// peerMain is the program of startOurs.
func peerMain() {
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(time.Now().UnixMicro(), fmt.Sprintf(format, args...))
	}
	b, err := backend.Open(context.Background(), os.Getenv(ourPeer))
	if err != nil {
		say("failed: %v", err)
		os.Exit(1)
	}
	e := elect.New(b, os.Args[1], &elect.Options{ID: os.Args[2]})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	over := make(chan struct{})
	campaign := func() {
		defer close(over)
		t, err := e.Campaign(ctx)
		if err != nil {
			if ctx.Err() == nil {
				say("failed: %v", err)
			}
			return
		}
		say("elected")
		select {
		case <-ctx.Done():
			if err := t.Resign(context.Background()); err != nil {
				say("failed: %v", err)
			}
		case <-t.Context().Done():
			say("lost")
		}
	}
	say("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch in.Text() {
		case "join":
			go campaign()
		case "leave":
			say("leaving")
			cancel()
			<-over
			say("left")
		default:
			say("failed: unknown command %s", in.Text())
		}
	}
	os.Exit(0)
}
