package health_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/metrics/health"
)

func Example() {
	b := memory.New(nil).Client("web-1")
	defer b.Close()
	live, ready := health.NewLive(0), health.NewReady()
	e := elect.New(b, "reports", &elect.Options{Trace: trace.Tee(live.Trace, ready.Trace)})

	mux := http.NewServeMux()
	mux.Handle("/live", live)
	mux.Handle("/ready", ready)
	mux.Handle("/leader", health.Leader(e))

	probe := func(path string) int {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w.Code
	}
	fmt.Println("starting:", probe("/live"), probe("/ready"), probe("/leader"))
	e.Run(context.Background(), func(context.Context, *elect.Term) error {
		fmt.Println("leading:", probe("/live"), probe("/ready"), probe("/leader"))
		return nil
	})
	// Output:
	// starting: 200 503 503
	// leading: 200 200 200
}
