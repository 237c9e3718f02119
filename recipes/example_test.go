package recipes_test

import (
	"context"
	"fmt"
	"log"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes"
	"github.com/succession-dev/succession/recipes/lock"
)

// What a lock, an item or a presence gives to its holder is one type, so a function can work under any of them.
func ExampleHold() {
	c := memory.New(nil)
	b := c.Client("web-1")
	defer b.Close()
	ctx := context.Background()

	held, err := lock.NewMutex(b, "reports", &elect.Options{ID: "web-1"}).Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer held.Unlock(ctx)
	if err := save(held.Hold, "42 pages"); err != nil {
		log.Fatal(err)
	}
	r, err := held.Get(ctx, "reports-done")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s, token %d\n", r.Value, held.Token())
	// Output: 42 pages, token 1
}

// save writes what was done, on condition that the hold lasts.
func save(h recipes.Hold, done string) error {
	ctx := h.Context() // it ends before another can hold the same
	_, err := h.Put(ctx, "reports-done", []byte(done), succession.Any)
	return err
}
