package coordinator_test

import (
	"fmt"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/memory"
)

// A driver of one's own is opened by its scheme. What its Open does not ask for is refused, so a
// parameter with a typing error never counts as left out.
func ExampleRegister() {
	shared := memory.New(nil)
	coordinator.Register(coordinator.Driver{
		Scheme: "testing",
		Open: func(u *coordinator.URL) (backend.Backend, error) {
			id := u.Text("id", "nobody")
			if err := u.Err(); err != nil {
				return nil, err
			}
			return shared.Client(id), nil
		},
	})
	for _, url := range []string{"testing:?id=web-1", "testing:?di=web-1"} {
		b, err := coordinator.DefaultMux.Open(url)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println("opened", url)
		b.Close()
	}
	// Output:
	// opened testing:?id=web-1
	// invalid URL testing:?di=redacted: unknown parameter "di"; known are id
}
