package health_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/metrics/health"
)

func Example() {
	b := memory.New(nil).Client("web-1")
	defer b.Close()
	live := health.NewLive(0)
	e := elect.New(b, "reports", &elect.Options{Trace: live.Trace})

	mux := http.NewServeMux()
	mux.Handle("/live", live)
	mux.Handle("/leader", health.Leader(e))

	probe := func(path string) int {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w.Code
	}
	fmt.Println("waiting:", probe("/live"), probe("/leader"))
	e.Run(context.Background(), func(context.Context, *elect.Term) error {
		fmt.Println("leading:", probe("/live"), probe("/leader"))
		return nil
	})
	// Output:
	// waiting: 200 503
	// leading: 200 200
}
