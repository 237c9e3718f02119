package queue_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/queue"
)

// Whoever takes an item confirms it when the work is done.
func ExampleQueue() {
	ctx := context.Background()
	b := memory.New(nil).Client("web-1") // or succession.Connect(ctx, os.Getenv("SUCCESSION_URL"))
	defer b.Close()

	mails := queue.New(b, "mails", nil)
	for _, to := range []string{"alice", "bob"} {
		if _, err := mails.Put(ctx, to); err != nil {
			fmt.Println(err)
			return
		}
	}
	for range 2 {
		item, err := mails.Take(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("a mail to", item.Value)
		if err := item.Done(ctx); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// a mail to alice
	// a mail to bob
}

// A ledger is a store of payments. Two numbers make each of them once: it remembers the ID of each
// item that it has booked, and refuses a taker that another has replaced. A database does both in
// the transaction that books; package fence has the second.
type ledger struct {
	balance int
	booked  map[string]bool   // by Item.ID
	newest  map[string]uint64 // the largest token, by Item.ID
}

var errReplaced = errors.New("another has taken it since")

func (l *ledger) book(item *queue.Item, cents int) error {
	if item.Token() < l.newest[item.ID] {
		return errReplaced
	}
	l.newest[item.ID] = item.Token()
	if !l.booked[item.ID] {
		l.booked[item.ID] = true
		l.balance += cents
	}
	return nil
}

// A taker loses its item after it has done the work, and before it has confirmed. The next one does
// the work again, which changes nothing.
func ExampleItem_Done() {
	ctx := context.Background()
	c := memory.New(nil)
	one, two := c.Client("one"), c.Client("two")
	defer one.Close()
	defer two.Close()
	payments := func(b *memory.Backend) *queue.Queue {
		return queue.New(b, "payments", &queue.Options{Options: elect.Options{ID: b.Name()}})
	}
	l := &ledger{booked: make(map[string]bool), newest: make(map[string]uint64)}

	if _, err := payments(one).Put(ctx, "100"); err != nil {
		fmt.Println(err)
		return
	}
	first, err := payments(one).Take(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("one books:", l.book(first, 100))
	one.Expire() // its session ends
	second, err := payments(two).Take(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("two books:", l.book(second, 100))
	fmt.Println("one has lost it:", errors.Is(first.Done(ctx), queue.ErrLost))
	fmt.Println("one tries again:", l.book(first, 100))
	fmt.Println("two confirms:", second.Done(ctx))
	fmt.Println("the balance is", l.balance)
	// Output:
	// one books: <nil>
	// two books: <nil>
	// one has lost it: true
	// one tries again: another has taken it since
	// two confirms: <nil>
	// the balance is 100
}
