package succession_test

import (
	"context"
	"fmt"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/elect"
	_ "github.com/succession-dev/succession/memory" // or etcd, zookeeper, consul, local
)

// One coordinator, opened by its URL, and an election on it.
func Example() {
	b, err := succession.Open("memory:example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	reports := elect.New(b, "reports", &elect.Options{ID: "web-1"})
	err = reports.Run(context.Background(), func(ctx context.Context, t *elect.Term) error {
		fmt.Println("this process leads with token", t.Token())
		return nil // the work is done, and the next in line leads
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// this process leads with token 1
}

func ExampleOpen_invalid() {
	_, err := succession.Open("memory:example?tll=10s")
	fmt.Println(err)
	// Output:
	// invalid URL memory:example?tll=redacted: unknown parameter "tll"; known are client, ttl
}
