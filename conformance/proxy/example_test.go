package proxy_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/succession-dev/succession/conformance/proxy"
)

// A network is cut and healed: the request waits, and its answer comes through.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") }))
	defer server.Close()
	p, err := proxy.Start(strings.TrimPrefix(server.URL, "http://"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()

	p.Cut()
	began := time.Now()
	time.AfterFunc(50*time.Millisecond, p.Heal)
	resp, err := http.Get("http://" + p.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status, "after the cut:", time.Since(began) >= 50*time.Millisecond)
	// Output: 200 OK after the cut: true
}
