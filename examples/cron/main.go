// Cron is a cron job that every host has in its crontab, and that runs once a time: on one host, and
// on the next one if that dies.
//
//	0 3 * * *  cron -url etcd://db1:2379,db2:2379/app -every 24h nightly /usr/local/bin/report --send
//
//	go run ./examples/cron -url local:/tmp/cron -every 1m nightly date
//
// All hosts stand in line. The first one looks up in a record which time was done last, runs the
// command if this one was not, and writes it down; those behind it then find it done. If the host dies
// meanwhile, the next in line finds it not done, and runs the command again: let the command bear that.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/succession-dev/succession"
	_ "github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/elect"
	_ "github.com/succession-dev/succession/etcd"
	_ "github.com/succession-dev/succession/local"
	"github.com/succession-dev/succession/recipes/record"
	_ "github.com/succession-dev/succession/zookeeper"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	url := flag.String("url", "local:", "the coordinator of all hosts, such as etcd://db1:2379,db2:2379/app")
	every := flag.Duration("every", time.Hour, "how often the command runs; times are counted in UTC")
	wait := flag.Duration("wait", time.Hour, "for how long this host stands by in case that another dies")
	flag.Parse()
	if flag.NArg() < 2 || *every <= 0 {
		fmt.Fprintln(os.Stderr, "usage: cron [flags] NAME CMD [ARG...], with -every above 0")
		os.Exit(2)
	}
	ctx, giveUp := context.WithCancelCause(ctx)
	standby := time.AfterFunc(*wait, func() { giveUp(errors.New("another host was at it for longer than -wait")) })
	if err := once(ctx, standby, *url, flag.Arg(0), time.Now().Truncate(*every), flag.Args()[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cron:", err)
		os.Exit(1)
	}
}

// once runs the command for the time at, unless that was done. standby ends the wait for that, and not the command.
func once(ctx context.Context, standby *time.Timer, url, name string, at time.Time, command []string) error {
	b, err := succession.Open(url)
	if err != nil {
		return err
	}
	defer b.Close()
	last := record.New(b, name+"-last", record.JSON[time.Time]())
	led := false // a term that is lost is followed by another
	return elect.New(b, name, nil).Run(ctx, func(ctx context.Context, t *elect.Term) error {
		if !led && !standby.Stop() { // it has waited for too long, and ctx is about to end
			<-ctx.Done()
			return context.Cause(ctx)
		}
		led = true
		e, err := last.Get(ctx)
		if err != nil {
			return err
		}
		if !e.Value.Before(at) {
			fmt.Printf("%s: done for %s\n", name, at.UTC().Format(time.DateTime))
			return nil
		}
		cmd := exec.CommandContext(ctx, command[0], command[1:]...) // ends with the term; what it has started does not, as under "succession run"
		cmd.Env = append(os.Environ(), fmt.Sprint("SUCCESSION_TOKEN=", t.Token()))
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return err // the next host tries
		}
		_, err = last.SetAs(ctx, t, e.Version, at) // only while this term stands
		return err
	})
}
