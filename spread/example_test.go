package spread_test

import (
	"context"
	"fmt"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/record"
	"github.com/succession-dev/succession/spread"
)

// A process leads elections on two clusters, and moves one of them.
func Example() {
	ctx := context.Background()
	clusters := spread.New(spread.List(
		spread.Cluster{Name: "east", URL: "memory:spread-east"},
		spread.Cluster{Name: "west", URL: "memory:spread-west"},
	), nil)
	defer clusters.Close()

	var leads []*elect.Term
	for _, name := range []string{"reports", "invoices", "mails"} {
		t, err := elect.New(clusters.For(name), name, nil).Campaign(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		leads = append(leads, t)
		home, _, err := clusters.Where(ctx, name)
		fmt.Println(name, home.At, err)
	}
	for _, t := range leads {
		t.Resign(ctx)
	}

	fmt.Println(clusters.Move(ctx, "mails", "west", nil), clusters.Finish(ctx, "mails", nil))
	home, fallsTo, err := clusters.Where(ctx, "mails")
	fmt.Println("mails", home.At, fallsTo, err)
	// Output:
	// reports west <nil>
	// invoices east <nil>
	// mails east <nil>
	// <nil> <nil>
	// mails west east <nil>
}

// The list may come from anywhere, such as from a record of one of the clusters, with a copy for when
// that one is out.
func ExampleSource() {
	one := memory.New(nil).Client("process")
	defer one.Close()
	listed := record.New(one, "clusters", record.JSON[[]spread.Cluster]())
	copied := []spread.Cluster{{Name: "east", URL: "memory:east"}}
	source := func(ctx context.Context) ([]spread.Cluster, error) {
		e, err := listed.Get(ctx)
		if err != nil || !e.Exists() {
			return copied, nil
		}
		return e.Value, nil
	}
	_, err := listed.Set(context.Background(), []spread.Cluster{{Name: "east", URL: "memory:east"}, {Name: "west", URL: "memory:west"}})
	fmt.Println(err)
	fmt.Println(source(context.Background()))
	// Output:
	// <nil>
	// [{east memory:east} {west memory:west}] <nil>
}

// A program that is given a URL runs on one cluster and on many.
func ExampleFor() {
	ctx := context.Background()
	for _, url := range []string{"memory:one", "spread:?to=east=memory:for-east&to=west=memory:for-west"} {
		b, err := succession.Connect(ctx, url)
		if err != nil {
			fmt.Println(err)
			return
		}
		t, err := elect.New(backend.For(b, "reports"), "reports", nil).Campaign(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(t.Resign(ctx), b.Close())
	}
	// Output:
	// <nil> <nil>
	// <nil> <nil>
}
