package candidate

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The libraries that Main knows.
const (
	Concurrency      = "etcd-concurrency"        // Election and Session of client/v3/concurrency
	ConsulLock       = "consul-lock"             // Lock of consul/api
	ZKLock           = "zk-lock"                 // Lock of go-zookeeper, heeding StateExpired
	ZKLockDisconnect = "zk-lock-on-disconnected" // ... heeding StateDisconnected
	Succession       = "succession"              // this project; the settings say the coordinator
)

// retryPause is how long a candidate waits after a failed attempt.
const retryPause = 500 * time.Millisecond

// Settings are what a candidate needs to know.
type Settings struct {
	Library     string
	Coordinator string   // "etcd", "consul" or "zookeeper"
	Addresses   []string // of the coordinator's servers
	Election    string
	ID          string
	Session     time.Duration
}

// A term is one leadership, as a library shows it.
type term struct {
	leads   func() bool // asks the library, as it documents; does not block
	release func()      // gives back what is left of it; may block
}

// An elector blocks until its candidate has been elected, and may be called again when the
// term before has been released.
type elector func(ctx context.Context) (term, error)

// libraries connects to a coordinator with each library.
var libraries = map[string]func(ctx context.Context, s Settings) (elector, error){
	Concurrency:      newConcurrency,
	ConsulLock:       newConsulLock,
	ZKLock:           newZKLock,
	ZKLockDisconnect: newZKLock,
	Succession:       newSuccession,
}

const command = "candidate"

// Is reports whether the arguments are those of a candidate.
func Is(args []string) bool { return len(args) == 8 && args[1] == command }

// Arguments returns the arguments of the candidate's process, without the program.
func Arguments(s Settings) []string {
	return []string{command, s.Library, s.Coordinator, strings.Join(s.Addresses, ","), s.Election, s.ID,
		strconv.FormatInt(s.Session.Milliseconds(), 10)}
}

// Main is a candidate: it blocks until standard input ends, and returns the exit status.
func Main(args []string) int {
	ms, err := strconv.Atoi(args[7])
	s := Settings{
		Library: args[2], Coordinator: args[3], Addresses: strings.Split(args[4], ","),
		Election: args[5], ID: args[6], Session: time.Duration(ms) * time.Millisecond,
	}
	connect, known := libraries[s.Library]
	if err == nil && !known {
		err = fmt.Errorf("no library %q; known are %v", s.Library, slices.Sorted(maps.Keys(libraries)))
	}
	if err == nil {
		err = serve(connect, s)
	}
	if err != nil {
		say(time.Now(), "failed: "+err.Error())
		return 1
	}
	return 0
}

// serve stands for election once it is told to, until standard input ends.
func serve(connect func(context.Context, Settings) (elector, error), s Settings) error {
	ctx := context.Background() // the end of the process is the end of everything in it
	elect, err := connect(ctx, s)
	if err != nil {
		return err
	}
	say(time.Now(), "ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		if in.Text() != "join" {
			return fmt.Errorf("unknown command %q", in.Text())
		}
		go stand(ctx, elect)
	}
	return in.Err()
}

// stand stands for election again and again.
func stand(ctx context.Context, elect elector) {
	for {
		t, err := elect(ctx)
		if err != nil {
			fmt.Fprintln(os.Stderr, time.Now().Format(time.RFC3339Nano), "not elected, trying again:", err)
			time.Sleep(retryPause) // no event tells when it is worth while
			continue
		}
		elected := time.Now()
		say(elected, "elected")
		say(work(elected, t.leads), "lost")
		t.release()
	}
}

// say tells of an event; each line goes out in one write.
func say(at time.Time, what string) {
	fmt.Printf("%d %s\n", at.UnixMicro(), strings.ReplaceAll(what, "\n", " "))
}
