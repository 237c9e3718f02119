// Collectors divides log sources over processes that come and go: the log collectors of
// ZooKeeper's documents.
//
//	go run ./examples/collectors
//	go run ./examples/collectors -url etcd://localhost:2379 -collectors 5 -rounds 20
//
// It starts collectors, which are processes of this program, on a coordinator. Each joins a group,
// takes its share of the sources, and records how far it has come in each, so that whoever gets the
// source next goes on from there. Again and again one of the collectors is killed, or leaves, and
// comes back. At each change the run prints who collects what. At the end it prints how often a
// source has moved, and that none ever had two collectors at once.
//
// collect.go is what a collector does. desk.go is how the run watches the collectors.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"github.com/succession-dev/succession/backend"
	_ "github.com/succession-dev/succession/consul"
	_ "github.com/succession-dev/succession/etcd"
	_ "github.com/succession-dev/succession/local"
	_ "github.com/succession-dev/succession/zookeeper"
)

var sources = []string{"auth", "cron", "daemon", "kernel", "mail", "ssh", "user", "web"}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	url := flag.String("url", "", "the coordinator, such as etcd://localhost:2379; empty is a temporary folder of this machine")
	collectors := flag.Int("collectors", 3, "how many there are")
	rounds := flag.Int("rounds", 6, "how often one goes and comes back")
	pause := flag.Duration("pause", time.Second, "the time between two changes")
	id := flag.String("collector", "", "used by the run itself: be the collector with this ID")
	flag.Parse()

	var err error
	if *id != "" {
		err = child(ctx, *url, *id)
	} else {
		err = run(ctx, os.Stdout, *url, *collectors, *rounds, *pause)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "collectors:", err)
		os.Exit(1)
	}
}

// run is the whole example. It fails if it sees what package group promises not to happen.
func run(ctx context.Context, out io.Writer, url string, collectors, rounds int, pause time.Duration) error {
	if collectors < 2 {
		return errors.New("two collectors are needed, so that one can go")
	}
	if url == "" {
		folder, err := os.MkdirTemp("", "collectors-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(folder)
		url = "local:" + folder
	}
	b, err := backend.Open(ctx, url)
	if err != nil {
		return err
	}
	defer b.Close()
	told, tells, err := os.Pipe()
	if err != nil {
		return err
	}
	defer tells.Close()
	d := newDesk(b, out)
	go d.listen(told)

	var all []*process
	defer func() {
		for _, p := range all {
			p.stop()
		}
	}()
	for i := range collectors {
		p := &process{id: fmt.Sprint("collector-", i+1), url: url, tells: tells}
		if err := p.start(); err != nil {
			return err
		}
		all = append(all, p)
		if err := d.settles(ctx, p.id, "has come", i+1); err != nil {
			return err
		}
	}
	for round := range rounds {
		p, before, how := all[round%collectors], d.owners(), "is killed"
		time.Sleep(pause)
		if round%2 == 0 {
			d.excuses(p.id)
			p.kill()
		} else {
			how = "leaves"
			p.stop()
		}
		if err := d.settles(ctx, p.id, how, collectors-1); err != nil {
			return err
		}
		time.Sleep(pause)
		if err := p.start(); err != nil {
			return err
		}
		if err := d.settles(ctx, p.id, "is back", collectors); err != nil {
			return err
		}
		if !maps.Equal(before, d.owners()) {
			return fmt.Errorf("%s is back and does not find its own sources again", p.id)
		}
	}
	return d.figures(ctx)
}

// A process is a collector that this process starts, stops and kills.
type process struct {
	id, url string
	tells   *os.File // where it tells what it does: one pipe for all, which keeps the order
	cmd     *exec.Cmd
	lives   io.Closer // the collector leaves when this is closed, and so also when the run dies
}

func (p *process) start() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	p.cmd = exec.Command(program, "-collector", p.id, "-url", p.url)
	p.cmd.Stdout, p.cmd.Stderr = p.tells, os.Stderr
	if p.lives, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	return p.cmd.Start()
}

func (p *process) stop() {
	p.lives.Close()
	p.cmd.Wait()
}

func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// child is what a collector's process runs. It ends when its standard input ends.
func child(ctx context.Context, url, id string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	b, err := backend.Open(ctx, url)
	if err != nil {
		return err
	}
	defer b.Close()
	err = collect(ctx, b, id, func(what, source string, token uint64) {
		fmt.Println(what, id, source, token)
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}
