package coordtest

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The kinds of peers.
const (
	PeerElectionSupport = "election-support" // ZooKeeper's LeaderElectionSupport
	PeerCuratorLatch    = "curator-latch"    // Curator's LeaderLatch
	PeerCuratorSelector = "curator-selector" // Curator's LeaderSelector
	PeerCuratorMutex    = "curator-mutex"    // Curator's InterProcessMutex
	PeerCuratorWrite    = "curator-write"    // the write lock of Curator's InterProcessReadWriteLock
	PeerCuratorRead     = "curator-read"     // and its read lock
	PeerCuratorQueue    = "curator-queue"    // Curator's DistributedQueue, with locks
	PeerCuratorGroup    = "curator-group"    // a group of Curator's GroupMember
	PeerKazoo           = "kazoo"            // kazoo's Election
	PeerKazooLock       = "kazoo-lock"       // kazoo's Lock
	PeerKazooWrite      = "kazoo-write"      // kazoo's WriteLock
	PeerKazooRead       = "kazoo-read"       // kazoo's ReadLock
	PeerKazooQueue      = "kazoo-queue"      // kazoo's LockingQueue
)

// A Peer is a participant of an election or a lock in a process of its own, mostly one
// of another library, so that it can be killed as a whole. It speaks a protocol of
// lines. Commands on its standard input are
//
//	join    stand in line
//	leave   leave the line, or give up leadership or the lock
//
// and each line on its standard output is an event: the microseconds since 1970,
// a space, and one of
//
//	ready     connected; commands are taken
//	elected   it leads
//	leaving   it is told to leave, and has not begun to
//	left      it has left, as far as its library says
//	lost      it leads no more, and was not asked to leave
//	failed: … something went wrong
//
// Whoever holds a lock or an item of a queue leads, and leaves when it is done with it. A peer of Curator's locks
// and latch, or of kazoo, may join again before it has left: then it stands in line more than once, and whoever leads
// leaves first, or else what joined first.
//
// A peer of a queue also takes the command "put N", which puts so many items, and says "put". A peer of a group is
// several members, each with a client of its own: "put N" has so many join, a join one more, and a leaving takes that
// one away. It says so when all of them know it.
//
// A peer that leads asks its library about every millisecond whether it still does,
// and acts if so. Its loss bears the time of its last act: of the moment before it
// asked and was told yes. A peer that was stopped in between has not acted.
//
// All processes of a machine share one clock, so the events of all peers can be
// put in order.
type Peer struct {
	// ID is who the peer says it is, in the line.
	ID string

	proc *process
	in   io.WriteCloser
	read sync.WaitGroup
	log  string
}

// A PeerEvent is what a peer has said.
type PeerEvent struct {
	Peer *Peer
	At   time.Time
	What string
}

// PeerOptions are what a peer needs to know.
type PeerOptions struct {
	Kind    string
	Address string // of the server
	Path    string // of the line's znode
	ID      string
	Session time.Duration
	Events  chan<- PeerEvent // gets what the peer says, and is not closed
	Dir     string           // an existing folder for its log
}

// StartPeer starts a peer of another library and does not wait for it to be ready.
// The caller kills it.
func StartPeer(o PeerOptions) (*Peer, error) {
	argv, err := peerCommand(o.Kind)
	if err != nil {
		return nil, err
	}
	return StartPeerProcess(o, slices.Concat(argv,
		[]string{o.Address, o.Path, o.ID, strconv.FormatInt(o.Session.Milliseconds(), 10)}))
}

// StartPeerProcess starts a program of the caller's own that speaks the protocol of
// a [Peer]. Of o it needs ID, Events and Dir.
func StartPeerProcess(o PeerOptions, argv []string) (*Peer, error) {
	p := &Peer{ID: o.ID, log: filepath.Join(o.Dir, o.ID+".log")}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	out, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = write, log
	cmd.SysProcAttr = dieWithParent()
	if p.in, err = cmd.StdinPipe(); err == nil {
		p.proc, err = startCommand(cmd, nil, nil)
	}
	write.Close()
	if err != nil {
		out.Close()
		return nil, err
	}
	p.read.Go(func() {
		defer out.Close()
		p.follow(out, o.Events)
	})
	return p, nil
}

// follow passes on what the peer says until it ends.
func (p *Peer) follow(out io.Reader, events chan<- PeerEvent) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		stamp, what, _ := strings.Cut(lines.Text(), " ")
		us, err := strconv.ParseInt(stamp, 10, 64)
		if err != nil {
			us, what = time.Now().UnixMicro(), "failed: it said "+lines.Text()
		}
		events <- PeerEvent{p, time.UnixMicro(us), what}
	}
}

// Send gives the peer a command.
func (p *Peer) Send(command string) error {
	_, err := io.WriteString(p.in, command+"\n")
	return err
}

// PID returns the process id.
func (p *Peer) PID() int { return p.proc.os.Pid }

// Ended reports whether the peer's process has ended, by itself or by Kill.
func (p *Peer) Ended() bool { return !p.proc.alive() }

// Kill ends the peer as a crash does, with SIGKILL, and returns when it is gone and
// all that it has said has been passed on.
func (p *Peer) Kill() {
	p.proc.kill()
	p.read.Wait()
}

// Pause stops the peer's process with SIGSTOP, and returns when no thread of it runs
// any more.
func (p *Peer) Pause() error { return p.signal("pause", (*process).pause) }

// Resume lets a paused peer go on.
func (p *Peer) Resume() error { return p.signal("resume", (*process).resume) }

func (p *Peer) signal(what string, f func(*process) error) error {
	if err := f(p.proc); err != nil {
		return fmt.Errorf("%s peer %s: %w", what, p.ID, err)
	}
	return nil
}

// Log returns what the peer has written to standard error.
func (p *Peer) Log() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

//go:embed peers/Peer.java
var javaPeer []byte

//go:embed peers/kazoo_peer.py
var pythonPeer []byte

const howToGetPeers = "run ./test servers, which installs what the tests need (on Debian and Ubuntu: " +
	"apt-get install default-jdk-headless libzookeeper-java libcurator-recipes-java python3-kazoo)"

// peerCommand returns the command line of a kind of peer, without its arguments
// from the address on.
func peerCommand(kind string) ([]string, error) {
	if strings.HasPrefix(kind, PeerKazoo) {
		argv, err := kazooCommand()
		return slices.Concat(argv, []string{kind}), err
	}
	argv, err := compiledPeer()
	if err != nil {
		return nil, err
	}
	heap := "-Xmx64m"
	if kind == PeerCuratorGroup { // many clients in one process
		heap = "-Xmx1g"
	}
	return slices.Concat(argv[:1], []string{heap}, argv[1:], []string{kind}), nil
}

// kazooCommand finds a Python that has kazoo. That of the system has Debian's
// package, and need not be the first in PATH.
var kazooCommand = sync.OnceValues(func() ([]string, error) {
	var errs []error
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		out, err := exec.Command(python, "-c", "import kazoo.recipe.election").CombinedOutput()
		if err == nil {
			return []string{python, "-c", string(pythonPeer)}, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w: %s", python, err, lastLine(out)))
	}
	return nil, fmt.Errorf("tests need kazoo: %s; %w", howToGetPeers, errors.Join(errs...))
})

// peerJars are the libraries of the peers, where Debian and Ubuntu have them. Their
// manifests name what they need.
var peerJars = []string{
	"/usr/share/java/curator-recipes.jar",
	"/usr/share/java/zookeeper-recipes-election.jar",
	"/usr/share/java/zookeeper.jar",
	debianLogger,
}

// compiledPeer compiles the peer of Java, once for its source and libraries, and returns
// the beginning of its command line, without the size of the heap.
var compiledPeer = sync.OnceValues(func() ([]string, error) {
	java, err := findJava()
	if err != nil {
		return nil, fmt.Errorf("tests need java: %w; %s", err, howToGetPeers)
	}
	javac, err := exec.LookPath(filepath.Join(filepath.Dir(java), "javac"))
	if err != nil {
		return nil, fmt.Errorf("tests need a Java compiler: %w; %s", err, howToGetPeers)
	}
	key, err := filesKey(append([]string{javac}, peerJars...)...)
	if err != nil {
		return nil, fmt.Errorf("tests need Curator and ZooKeeper's recipes: %w; %s", err, howToGetPeers)
	}
	jars := strings.Join(peerJars, string(os.PathListSeparator))
	classes, err := cached(context.Background(), append(key, javaPeer...), "peer", func(part string) error {
		source := filepath.Join(part, "Peer.java")
		err := os.Mkdir(part, 0o755)
		if err == nil {
			err = os.WriteFile(source, javaPeer, 0o644)
		}
		if err != nil {
			return err
		}
		out, err := exec.Command(javac, "-cp", jars, "-d", part, "-proc:none", source).CombinedOutput()
		if err != nil {
			return fmt.Errorf("compile %s: %w: %s", source, err, out)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return []string{java, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", jars + string(os.PathListSeparator) + classes, "Peer"}, nil
})

func lastLine(b []byte) string {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}
