package consul

import (
	"errors"
	"io"
	"net/http"
)

// maxAnswer is the longest answer that is read. A line of ten thousand members with the longest values takes a
// half of it.
const maxAnswer = 128 << 20

var errTooLong = errors.New("the answer is longer than 128 MiB, which no line needs")

// bounded ends answers that are too long. The api package reads them to their end, also those of errors.
type bounded struct{ http.RoundTripper }

func (t bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(req)
	if err == nil {
		resp.Body = &boundedBody{resp.Body, maxAnswer}
	}
	return resp, err
}

func (t bounded) CloseIdleConnections() { closeIdle(t.RoundTripper) }

type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
