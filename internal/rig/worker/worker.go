//go:build linux

package worker

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/store"
)

// Config is what a worker needs to know. Each field is a flag.
type Config struct {
	URL       string        // -url: of the backend
	Via       [][2]string   // -via: a server's address, and where it is to be reached instead; as A=B, with commas between
	ID        string        // -id: of the candidate
	Elections []string      // -elections: with commas between
	Store     string        // -store: a folder, in which each election has one of its own
	Log       string        // -log: the beginning of the names of the files that it writes
	Origin    time.Duration // -origin: when the history began, in nanoseconds of Now
	Tenure    time.Duration // -tenure: for how long to lead at most; 0 is until told to resign
	Pace      time.Duration // -pace: between two rounds of writes
	// Work is how long it takes at most from a check to the write that it is for
	// (-work). A process that is paused is often paused there.
	Work time.Duration
	// Heedless makes a faulty worker (-heedless): it asks nobody whether it still
	// leads, and goes on until the store refuses a write for the second time. The first
	// may be one that it had begun before anybody else led, which is nobody's fault.
	Heedless bool
	// Names are names that only this process knows (-names), with the addresses of each; as A=B+C, with commas between.
	Names map[string][]string
	// Forgetful makes a worker with a faulty driver (-forgetful): it reads each file that the URL names once, and
	// knows the first address of each name alone.
	Forgetful bool
}

// Args returns c as the arguments of [Main].
func (c Config) Args() []string {
	args := []string{
		"-url=" + c.URL, "-id=" + c.ID, "-elections=" + strings.Join(c.Elections, ","),
		"-store=" + c.Store, "-log=" + c.Log, fmt.Sprintf("-origin=%d", c.Origin.Nanoseconds()),
		"-tenure=" + c.Tenure.String(), "-pace=" + c.Pace.String(), "-work=" + c.Work.String(),
	}
	if len(c.Via) > 0 {
		var all []string
		for _, p := range c.Via {
			all = append(all, p[0]+"="+p[1])
		}
		args = append(args, "-via="+strings.Join(all, ","))
	}
	if len(c.Names) > 0 {
		var all []string
		for name, addrs := range c.Names {
			all = append(all, name+"="+strings.Join(addrs, "+"))
		}
		args = append(args, "-names="+strings.Join(all, ","))
	}
	if c.Heedless {
		args = append(args, "-heedless")
	}
	if c.Forgetful {
		args = append(args, "-forgetful")
	}
	return args
}

func parse(args []string) (c Config, err error) {
	f := flag.NewFlagSet("worker", flag.ContinueOnError)
	f.StringVar(&c.URL, "url", "", "URL of the backend")
	f.Func("via", "where servers are to be reached instead of at their addresses, as A=B with commas between", func(all string) error {
		for pair := range strings.SplitSeq(all, ",") {
			a, b, ok := strings.Cut(pair, "=")
			if !ok {
				return fmt.Errorf("%q is not of the form A=B", pair)
			}
			c.Via = append(c.Via, [2]string{a, b})
		}
		return nil
	})
	c.Names = make(map[string][]string)
	f.Func("names", "names that only this process knows, as A=B+C with commas between", func(all string) error {
		for pair := range strings.SplitSeq(all, ",") {
			name, addrs, ok := strings.Cut(pair, "=")
			if !ok {
				return fmt.Errorf("%q is not of the form A=B+C", pair)
			}
			c.Names[name] = strings.Split(addrs, "+")
		}
		return nil
	})
	f.StringVar(&c.ID, "id", "", "ID of the candidate")
	elections := f.String("elections", "", "names of the elections, with commas between")
	f.StringVar(&c.Store, "store", "", "folder of the store")
	f.StringVar(&c.Log, "log", "", "beginning of the names of the files to write")
	origin := f.Int64("origin", 0, "when the history began, in nanoseconds of CLOCK_BOOTTIME")
	f.DurationVar(&c.Tenure, "tenure", 0, "for how long to lead at most; 0 is without end")
	f.DurationVar(&c.Pace, "pace", 100*time.Millisecond, "pause between two rounds of writes")
	f.DurationVar(&c.Work, "work", 20*time.Millisecond, "longest time from a check to its write")
	f.BoolVar(&c.Heedless, "heedless", false, "be faulty: write on without asking whether it still leads")
	f.BoolVar(&c.Forgetful, "forgetful", false, "be faulty: read each file once, and know one address of each name")
	if err := f.Parse(args); err != nil {
		return c, err
	}
	c.Elections, c.Origin = strings.Split(*elections, ","), time.Duration(*origin)
	if c.URL == "" || c.ID == "" || *elections == "" || c.Store == "" || c.Log == "" || f.NArg() > 0 {
		return c, errors.New("worker: it takes -url, -id, -elections, -store, -log, and no arguments")
	}
	return c, nil
}

// Exit codes of [Main].
const (
	exitFailed   = 1 // something needs somebody to act
	exitUnclosed = 3 // members may stand for a session time
)

// Main is the process: it returns its exit code when commands, its standard input, end
// or SIGTERM comes. See the package comment.
func Main(args []string, commands io.Reader) int {
	c, err := parse(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitFailed
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err = run(ctx, c, commands)
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	var left *unclosedError
	if errors.As(err, &left) {
		return exitUnclosed
	}
	return exitFailed
}

// unclosedError says that the backend could not be closed in good order.
type unclosedError struct{ error }

func (e *unclosedError) Unwrap() error { return e.error }

// A worker is the process.
type worker struct {
	Config
	b      backend.Backend
	clock  func() time.Duration
	notes  *history.Recorder
	ops    *opLog
	logger *slog.Logger
}

// run works until ctx or the commands end.
func run(ctx context.Context, c Config, commands io.Reader) (err error) {
	clock := Clock(c.Origin)
	notes, err := os.Create(c.Log + ".history.jsonl")
	if err != nil {
		return err
	}
	defer notes.Close()
	ops, err := os.Create(c.Log + ".ops.jsonl")
	if err != nil {
		return err
	}
	defer ops.Close()
	acts, err := os.Create(c.Log + ".acts")
	if err != nil {
		return err
	}
	defer acts.Close()
	w := &worker{
		Config: c,
		clock:  clock,
		notes:  history.NewRecorder(clock, io.MultiWriter(notes, os.Stdout)),
		ops:    &opLog{clock: clock, w: ops},
		logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all []*candidate
	for i, name := range c.Elections {
		s, err := store.Open(filepath.Join(c.Store, name), clock)
		if err != nil {
			return err
		}
		defer s.Close()
		all = append(all, newCandidate(w, name, s, actFile{acts, i}))
	}
	go func() { // ends with the process: a read of the standard input cannot be interrupted
		follow(commands, all)
		cancel(errors.New("the standard input has ended"))
	}()

	if c.Forgetful {
		if c, err = c.forgetful(); err != nil {
			return err
		}
	}
	resolve(c.Names)
	if w.b, err = open(ctx, c); err != nil {
		if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
			return nil // it was told to end before it had begun
		}
		return err
	}
	defer func() {
		if cerr := w.b.Close(); cerr != nil && err == nil {
			err = &unclosedError{fmt.Errorf("close the backend: %w", cerr)}
		}
	}()
	var wg sync.WaitGroup
	for _, c := range all {
		wg.Go(func() {
			if err := c.run(ctx); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	var failed *failedError
	if errors.As(context.Cause(ctx), &failed) {
		return failed
	}
	return w.notes.Err()
}

// follow obeys commands until they end.
func follow(commands io.Reader, all []*candidate) {
	for lines := bufio.NewScanner(commands); lines.Scan(); {
		for _, c := range all {
			if lines.Text() == Resign {
				c.askToResign()
			}
		}
	}
}

// Resign is the command to give up what one leads.
const Resign = "resign"

// open opens the backend, and tries again where the coordinator may come back. So it does where that is denied, for
// a while: the secret may have been replaced in one place and not yet in the other.
func open(ctx context.Context, c Config) (backend.Backend, error) {
	wait := backoff.Backoff{Min: 50 * time.Millisecond, Max: time.Second}
	for began := time.Now(); ; {
		b, err := c.open(ctx)
		denied := errors.Is(err, backend.ErrDenied) && time.Since(began) < 10*time.Second
		if err == nil || !denied && !errors.Is(err, backend.ErrUnavailable) {
			return b, err
		}
		if err := wait.Sleep(ctx); err != nil {
			return nil, err
		}
	}
}
