package example

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// An answer that does not end takes neither the memory of this process nor its time.
func TestLongAnswer(t *testing.T) {
	const all = 256 << 20
	written := make(chan int, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := 0
		for block := make([]byte, 1<<20); n < all; n += len(block) {
			if _, err := w.Write(block); err != nil {
				break
			}
		}
		select {
		case written <- n:
		default:
		}
	}))
	defer server.Close()
	b := New(new(http.Transport), strings.TrimPrefix(server.URL, "http://"), time.Second)
	defer b.Close()
	if _, err := b.send(context.Background(), 10*time.Second, "lines", request{}); err == nil {
		t.Error("it is believed")
	}
	if n := <-written; n >= all {
		t.Error("all of it was read")
	}
}
