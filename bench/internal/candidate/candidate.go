package candidate

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// retryPause is how long a candidate waits after a failed attempt.
const retryPause = 500 * time.Millisecond

// A Term is one leadership, as a library shows it.
type Term struct {
	Leads func() bool // asks the library, as it documents; does not block
	// Release gives up leadership, or, if it was lost, gives back what is left of it. It may
	// block.
	Release func(lost bool) error
}

// An Elector blocks until its candidate has been elected, and may be called again when the
// term before has been released.
type Elector func(ctx context.Context) (Term, error)

// A Connect connects a process to a coordinator. What it returns makes the candidates of an
// election there.
type Connect func(ctx context.Context, s Settings) (func(election string) Elector, error)

// Is reports whether the arguments are those of a candidate.
func Is(args []string) bool { return len(args) == 8 && args[1] == command }

// Main is a process of candidates: it blocks until standard input ends, and returns the exit
// status. connect is that of the program, where it is one of a library's own; see
// [Library.Program].
func Main(args []string, connect Connect) int {
	ms, err := strconv.Atoi(args[6])
	s := Settings{
		Addresses: strings.Split(args[3], ","), Election: args[4], ID: args[5],
		Session: time.Duration(ms) * time.Millisecond, Idle: args[7] == "true",
	}
	all := slices.Concat(Libraries, Floors)
	i := slices.IndexFunc(all, func(l Library) bool { return l.ID() == args[2] })
	if err == nil && i < 0 {
		err = fmt.Errorf("no library %q", args[2])
	}
	if err == nil {
		s.Library = all[i]
		if connect == nil {
			connect = s.Library.Connect
		}
		err = serve(s, connect)
	}
	if err != nil {
		say(time.Now(), "failed: "+err.Error())
		return 1
	}
	return 0
}

// serve obeys commands until standard input ends.
func serve(s Settings, connect Connect) error {
	ctx := context.Background() // the end of the process is the end of everything in it
	candidates, err := connect(ctx, s)
	if err != nil {
		return err
	}
	places := make(map[string]*place)
	say(time.Now(), "ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		verb, suffix, _ := strings.Cut(in.Text(), " ")
		switch verb {
		case "join":
			p := places[suffix]
			if p == nil {
				p = &place{suffix: suffix, idle: s.Idle, leave: make(chan struct{}, 1)}
				places[suffix] = p
			}
			e := p.free()
			if e == nil {
				e = candidates(s.Election + suffix)
			}
			go p.stand(ctx, e)
		case "leave":
			places[suffix].leave <- struct{}{}
		case "rotate":
			rotating.Store(true)
			for _, p := range places {
				close(p.leave)
			}
		case "count":
			say(time.Now(), fmt.Sprint("count ", rotations.Load()))
		case "weigh":
			heap, stacks, goroutines := Weigh()
			say(time.Now(), fmt.Sprint("weighs ", heap, " ", stacks, " ", goroutines))
		default:
			return fmt.Errorf("unknown command %q", in.Text())
		}
	}
	return in.Err()
}

// Weigh returns the bytes of this process that are in use, of its heap and of its stacks, and how
// many goroutines it has.
func Weigh() (heap, stacks, goroutines int) {
	for range 3 { // the stacks of goroutines that wait shrink by half each time
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc), int(m.StackInuse), runtime.NumGoroutine()
}

// rotating says that each leader leaves and joins again, and rotations is how often one was
// elected since.
var (
	rotating  atomic.Bool
	rotations atomic.Int64
)

// A place is what a process has in one election.
type place struct {
	suffix string // of its name
	idle   bool
	leave  chan struct{} // whoever leads takes one, and leaves

	mu    sync.Mutex
	spare []Elector // of candidates that have left
}

// free returns the Elector of a candidate that has left, or nil.
func (p *place) free() Elector {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.spare)
	if n == 0 {
		return nil
	}
	e := p.spare[n-1]
	p.spare = p.spare[:n-1]
	return e
}

// stand stands for election until it has led and left; after a loss it stands again.
func (p *place) stand(ctx context.Context, elect Elector) {
	for {
		t, err := elect(ctx)
		if err != nil {
			fmt.Fprintln(os.Stderr, time.Now().Format(time.RFC3339Nano), "not elected, trying again:", err)
			time.Sleep(retryPause) // no event tells when it is worth while
			continue
		}
		elected := time.Now()
		if rotating.Load() {
			rotations.Add(1)
		} else {
			say(elected, "elected"+p.suffix)
		}
		leads := t.Leads
		if p.idle {
			leads = nil
		}
		last, leaves := work(elected, leads, p.leave)
		if !leaves {
			say(last, "lost"+p.suffix)
			_ = t.Release(true) // what cannot be given back goes with the session
			continue
		}
		leaving := time.Now()
		if err := t.Release(false); err != nil {
			say(time.Now(), "failed: leave: "+err.Error())
			return
		}
		if rotating.Load() {
			continue
		}
		p.mu.Lock()
		p.spare = append(p.spare, elect)
		p.mu.Unlock()
		say(leaving, "leaving"+p.suffix)
		say(time.Now(), "left"+p.suffix)
		return
	}
}

// say tells of an event; each line goes out in one write.
func say(at time.Time, what string) {
	fmt.Printf("%d %s\n", at.UnixMicro(), strings.ReplaceAll(what, "\n", " "))
}
