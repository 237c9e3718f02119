package zookeeper_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/recipes/lock"
)

// ourPeer makes the test binary one participant of an election or a lock: its value is the
// URL. Arguments are the kind of participant, the line and the participant's ID; the protocol
// is that of coordtest.Peer.
const ourPeer = "SUCCESSION_TEST_PEER"

// The kinds of our participants.
const (
	ours      = "ours" // an election
	oursLock  = "ours-lock"
	oursWrite = "ours-write" // the writers' side of a RWMutex
	oursRead  = "ours-read"
)

// startOurs starts one participant of ours in a process of its own.
func startOurs(o coordtest.PeerOptions, url, line string) (*coordtest.Peer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return coordtest.StartPeerProcess(o, []string{"/usr/bin/env", ourPeer + "=" + url, self, o.Kind, line, o.ID})
}

// peerMain is the program of startOurs.
func peerMain() {
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(time.Now().UnixMicro(), fmt.Sprintf(format, args...))
	}
	b, err := succession.Connect(context.Background(), os.Getenv(ourPeer))
	if err != nil {
		say("failed: %v", err)
		os.Exit(1)
	}
	line, options := os.Args[2], &elect.Options{ID: os.Args[3]}
	lead := map[string]func(context.Context) (*elect.Term, error){
		ours:      elect.New(b, line, options).Campaign,
		oursLock:  termOf(lock.NewMutex(b, line, options).Lock),
		oursWrite: termOf(lock.NewRWMutex(b, line, options).Lock),
		oursRead:  termOf(lock.NewRWMutex(b, line, options).RLock),
	}[os.Args[1]]
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	over := make(chan struct{})
	campaign := func() {
		defer close(over)
		t, err := lead(ctx)
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

// termOf returns the call with the term that a held lock is.
func termOf(lock func(context.Context) (*lock.Held, error)) func(context.Context) (*elect.Term, error) {
	return func(ctx context.Context) (*elect.Term, error) {
		held, err := lock(ctx)
		if err != nil {
			return nil, err
		}
		return held.Term(), nil
	}
}
