package gocron_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"

	adapter "github.com/succession-dev/succession/adapters/gocron"
)

// Of all schedulers one runs the jobs. Its job is told when it must stop.
func ExampleElector_Task() {
	b := memory.New(nil).Client("web-1") // or succession.Connect(ctx, os.Getenv("SUCCESSION_URL"))
	defer b.Close()
	elector := adapter.NewElector(elect.New(b, "jobs", nil))
	defer elector.Close()
	s, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Shutdown()

	sent := make(chan uint64)
	send := elector.Task(func(ctx context.Context, term *elect.Term) error {
		select {
		case sent <- term.Token(): // a store would refuse a smaller token
		case <-ctx.Done(): // another scheduler leads
		}
		return nil
	})
	if _, err := s.NewJob(gocron.DurationJob(10*time.Millisecond), gocron.NewTask(send)); err != nil {
		fmt.Println(err)
		return
	}
	s.Start()
	fmt.Println("sent with token", <-sent)
	// Output: sent with token 1
}
