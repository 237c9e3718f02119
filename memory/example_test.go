package memory_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
)

// A leader is cut off from the coordinator, and another takes over. In virtual time
// this is exact, and takes no time.
func Example() {
	// An example has no t of its own; a test passes its own here.
	synctest.Test(new(testing.T), func(t *testing.T) {
		c := memory.New(&memory.Options{TTL: 10 * time.Second})
		began := time.Now()
		say := func(format string, args ...any) {
			fmt.Printf("%5.1fs  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
		}

		// A process that leads until it loses leadership, or is told to stop.
		process := func(ctx context.Context, b *memory.Backend) {
			defer b.Close()
			e := elect.New(b, "reports", &elect.Options{ID: b.Name(), Margin: time.Second})
			e.Run(ctx, func(ctx context.Context, term *elect.Term) error {
				say("%s leads with token %d", b.Name(), term.Token())
				<-ctx.Done()
				say("%s stops; leadership lost: %v", b.Name(), errors.Is(context.Cause(ctx), elect.ErrLost))
				return nil
			})
		}
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		web1, web2 := c.Client("web-1"), c.Client("web-2")
		go process(ctx, web1)
		synctest.Wait() // web-1 leads
		go process(ctx, web2)

		time.Sleep(15 * time.Second)
		say("web-1 is cut off")
		web1.Cut()
		time.Sleep(15 * time.Second)
		say("web-1 is healed")
		web1.Heal()
		synctest.Wait()
		for _, m := range c.Members("reports") {
			say("in line stands %s", m.Value)
		}
		say("everybody is told to stop")
		stop()
		synctest.Wait()
	})
	// Output:
	//   0.0s  web-1 leads with token 1
	//  15.0s  web-1 is cut off
	//  22.3s  web-1 stops; leadership lost: true
	//  23.3s  web-2 leads with token 2
	//  30.0s  web-1 is healed
	//  30.0s  in line stands web-2
	//  30.0s  in line stands web-1
	//  30.0s  everybody is told to stop
	//  30.0s  web-2 stops; leadership lost: false
}

// An operator ends the leader's session: it is deposed at once, and whoever is
// elected next has a larger token.
func ExampleBackend_Expire() {
	ctx := context.Background()
	c := memory.New(nil)
	terms := make([]*elect.Term, 2)
	backends := make([]*memory.Backend, 2)
	for i := range backends {
		backends[i] = c.Client(fmt.Sprint("web-", i+1))
		defer backends[i].Close()
	}
	terms[0], _ = elect.New(backends[0], "reports", nil).Campaign(ctx)
	backends[0].Expire()
	<-terms[0].Context().Done()
	fmt.Println("deposed:", errors.Is(terms[0].Check(), elect.ErrLost))

	terms[1], _ = elect.New(backends[1], "reports", nil).Campaign(ctx)
	fmt.Println("replaced:", terms[1].Token() > terms[0].Token())
	terms[1].Resign(ctx)
	// Output:
	// deposed: true
	// replaced: true
}
