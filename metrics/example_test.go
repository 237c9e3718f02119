package metrics_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/metrics"
)

func Example() {
	b := memory.New(nil).Client("web-1")
	defer b.Close()
	m := metrics.New(nil)
	e := elect.New(b, "reports", &elect.Options{Trace: m.Trace})
	e.Run(context.Background(), func(context.Context, *elect.Term) error {
		scrape := httptest.NewRecorder()
		m.ServeHTTP(scrape, httptest.NewRequest("GET", "/metrics", nil))
		for line := range strings.Lines(scrape.Body.String()) {
			if strings.HasPrefix(line, "succession_leader") {
				fmt.Print(line)
			}
		}
		return nil
	})
	// Output: succession_leader{election="reports"} 1
}
