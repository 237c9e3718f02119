package backend_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/memory"
)

// The parts of a recipe: members stand in line, each waits for the one just in front, and what the
// first one writes is refused once it has left.
func Example() {
	ctx := context.Background()
	c := memory.New(nil)
	open := func(id string) (backend.Session, error) {
		b := c.Client(id) // the caller of a real one closes it
		return b.Session(ctx)
	}
	a, err := open("a")
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := open("b")
	if err != nil {
		fmt.Println(err)
		return
	}
	first, err := a.Join(ctx, "reports", "a", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := b.Join(ctx, "reports", "b", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	place, err := b.Ahead(ctx, second.Member)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("b waits for a:", place.Ahead.Key == first.Key)

	if err := a.Leave(ctx, first.Member); err != nil {
		fmt.Println(err)
		return
	}
	for !place.First {
		if err := b.WatchPlace(ctx, second.Member, &place); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println("b leads with token", place.Token)

	_, err = a.Put(ctx, "position", []byte("1042"), &backend.If{Member: first.Member})
	fmt.Println("a may write:", !errors.Is(err, backend.ErrNotMember))
	// Output:
	// b waits for a: true
	// b leads with token 2
	// a may write: false
}
