package elect_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
)

// A store is a resource that leaders write to. It remembers the largest token that it
// has seen, and turns away whoever comes with a smaller one.
type store struct {
	mu    sync.Mutex
	token uint64
	value string
}

var errDeposed = errors.New("a later leader has been here")

// admit is called under the lock that also holds the work: a token that is compared
// first and forgotten until the write protects nothing.
func (s *store) admit(token uint64) error {
	if token < s.token {
		return errDeposed
	}
	s.token = token
	return nil
}

// Read shows the token, too: from then on no earlier leader changes what was read.
func (s *store) Read(token uint64) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.value, s.admit(token)
}

func (s *store) Write(token uint64, value string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.admit(token); err != nil {
		return err
	}
	s.value = value
	return nil
}

// The process of web-1 stands still between its check and its write, for longer than
// its session lasts. Then it goes on where it was, and the store knows better.
func ExampleTerm_Token() {
	synctest.Test(new(testing.T), func(*testing.T) { // in virtual time: the pause takes none
		ctx := context.Background()
		c := memory.New(&memory.Options{TTL: 10 * time.Second})
		web1, web2 := c.Client("web-1"), c.Client("web-2")
		defer web1.Close()
		defer web2.Close()
		var accounts store

		first, err := elect.New(web1, "reports", nil).Campaign(ctx)
		if err != nil {
			panic(err)
		}
		defer first.Resign(ctx)
		fmt.Println("web-1 checks:", first.Check())

		web1.Cut() // nothing comes from a process that stands still
		second, err := elect.New(web2, "reports", nil).Campaign(ctx)
		if err != nil {
			panic(err)
		}
		defer second.Resign(ctx)
		old, err := accounts.Read(second.Token())
		fmt.Printf("web-2 reads %q: %v\n", old, err)
		fmt.Println("web-2 writes:", accounts.Write(second.Token(), "sent by web-2"))

		// web-1 goes on, right behind its check.
		fmt.Println("web-1 writes:", accounts.Write(first.Token(), "sent by web-1"))
		fmt.Println("web-1 checks:", first.Check())
		fmt.Println("there stands:", accounts.value)
	})
	// Output:
	// web-1 checks: <nil>
	// web-2 reads "": <nil>
	// web-2 writes: <nil>
	// web-1 writes: a later leader has been here
	// web-1 checks: leadership lost of reports (token 1): no confirmation from the coordinator before the deadline
	// there stands: sent by web-2
}

// An operator deposes a leader that is cut off: two believe that they lead, and no
// clock can tell. A guarded write can.
func ExampleTerm_Put_deposed() {
	ctx := context.Background()
	c := memory.New(nil)
	web1, web2 := c.Client("web-1"), c.Client("web-2")
	defer web1.Close()
	defer web2.Close()

	first, err := elect.New(web1, "reports", nil).Campaign(ctx)
	if err != nil {
		panic(err)
	}
	defer first.Resign(ctx)
	web1.Cut()
	c.Remove("reports", first.Member().Key)
	second, err := elect.New(web2, "reports", nil).Campaign(ctx)
	if err != nil {
		panic(err)
	}
	defer second.Resign(ctx)
	fmt.Println("web-1 believes that it leads:", first.Check() == nil)
	fmt.Println("web-2 believes that it leads:", second.Check() == nil)

	web1.Heal()
	_, err = first.Put(ctx, "reports-position", []byte("17"), backend.Any)
	fmt.Println("the write of web-1 is refused:", errors.Is(err, backend.ErrNotMember))
	_, err = second.Put(ctx, "reports-position", []byte("1042"), backend.Any)
	fmt.Println("the write of web-2 is done:", err == nil)
	// Output:
	// web-1 believes that it leads: true
	// web-2 believes that it leads: true
	// the write of web-1 is refused: true
	// the write of web-2 is done: true
}
