package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/succession-dev/succession/internal/rig/coordtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := command(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "handover:", err)
		os.Exit(1)
	}
}

// command is the program.
func command(ctx context.Context, args []string, out io.Writer) error {
	set := flag.NewFlagSet("handover", flag.ContinueOnError)
	sizes := set.String("n", "5,1000", "candidates in line, with commas between")
	times := set.Int("times", 200, "handovers measured for each row")
	which := set.String("library", "", `only libraries such that this regular expression matches in "coordinator: name"`)
	if err := set.Parse(args); err != nil {
		return err
	}
	chosen, err := regexp.Compile(*which)
	if err != nil {
		return fmt.Errorf("-library: %w", err)
	}
	fmt.Fprintln(out, "| coordinator | library | in line | p50 | p99 | floor p50 | floor p99 | p50 / floor | p99 / floor |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|---|")
	for _, size := range strings.Split(*sizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil || n < 2 {
			return fmt.Errorf("-n: %q is not a number above 1", size)
		}
		for _, l := range libraries {
			if !chosen.MatchString(l.coordinator + ": " + l.name) {
				continue
			}
			r, err := measure(ctx, l, n, *times)
			if err != nil {
				return fmt.Errorf("%s, %s, %d in line: %w", l.coordinator, l.name, n, err)
			}
			fmt.Fprintln(out, r.row(l, n))
		}
	}
	fmt.Fprintf(out, "\n%s, %d handovers for each row, %s on %s/%s, %d cores.\n",
		time.Now().Format(time.DateOnly), *times, runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	return nil
}

// measure starts a coordinator and measures one line on it, and the floor.
func measure(ctx context.Context, l library, n, times int) (*result, error) {
	addr, stop, err := start(ctx, l.coordinator)
	if err != nil {
		return nil, err
	}
	var queue *line
	defer func() {
		stop()
		if queue != nil {
			queue.campaigns.Wait() // some end only with the server
		}
	}()
	floor, err := floors[l.coordinator](ctx, addr)
	if err != nil {
		return nil, err
	}
	defer floor.close()
	campaigns, cancel := context.WithCancel(ctx)
	defer cancel()
	queue, err = l.open(campaigns, addr, fmt.Sprintf("bench-%08x", rand.Uint32()))
	if err != nil {
		return nil, err
	}
	defer queue.close()
	queue.won = make(chan win, n) // so that no campaign waits for a reader
	for range n {
		if err := queue.join(campaigns); err != nil {
			return nil, err
		}
	}
	first, err := queue.next(ctx)
	if err != nil {
		return nil, err
	}
	leader := first.leader
	r := new(result)
	for i := range warmUp + times {
		next, took, err := queue.handover(campaigns, leader)
		if err != nil {
			return nil, err
		}
		leader = next
		least, err := floor.once(ctx)
		if err != nil {
			return nil, fmt.Errorf("floor: %w", err)
		}
		if i >= warmUp {
			r.handover, r.floor = append(r.handover, took), append(r.floor, least)
		}
	}
	return r, nil
}

// warmUp is how many handovers are not counted: servers compile and caches fill meanwhile.
const warmUp = 20

// start starts a coordinator of one server.
func start(ctx context.Context, coordinator string) (addr string, stop func(), err error) {
	switch coordinator {
	case "etcd":
		e, err := coordtest.StartEtcd(ctx, nil)
		if err != nil {
			return "", nil, err
		}
		return e.Addrs()[0], e.Stop, nil
	case "consul":
		c, err := coordtest.StartConsul(ctx, &coordtest.ConsulOptions{
			// A waiting candidate is a connection, and all of them are of this machine.
			Config: []string{"limits{http_max_conns_per_client=10000}"},
		})
		if err != nil {
			return "", nil, err
		}
		return c.Addrs()[0], c.Stop, nil
	}
	z, err := coordtest.StartZooKeeper(ctx, &coordtest.ZooKeeperOptions{NoSync: true})
	if err != nil {
		return "", nil, err
	}
	return z.Addrs()[0], z.Stop, nil
}

// A result is the times of one row.
type result struct{ handover, floor []time.Duration }

func (r *result) row(l library, n int) string {
	h50, h99 := quantile(r.handover, 0.50), quantile(r.handover, 0.99)
	f50, f99 := quantile(r.floor, 0.50), quantile(r.floor, 0.99)
	return fmt.Sprintf("| %s | %s | %d | %s | %s | %s | %s | **%.2f** | **%.2f** |",
		titles[l.coordinator], l.name, n, ms(h50), ms(h99), ms(f50), ms(f99), float64(h50)/float64(f50), float64(h99)/float64(f99))
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond)) }

// quantile returns the smallest of the times such that at least the share q of them is no larger.
func quantile(times []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	i := int(q*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}
