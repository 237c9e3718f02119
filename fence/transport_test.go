package fence_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/fence"
	"github.com/succession-dev/succession/memory"
)

var _ fence.Term = (*elect.Term)(nil)

type term struct {
	token uint64
	err   error
}

func (t term) Token() uint64 { return t.token }
func (t term) Check() error  { return t.err }

// A base is a RoundTripper that keeps what it was to send.
type base struct{ sent []*http.Request }

func (b *base) RoundTrip(r *http.Request) (*http.Response, error) {
	b.sent = append(b.sent, r)
	return &http.Response{StatusCode: 200, Body: http.NoBody, Request: r}, nil
}

func TestTransportSendsTheToken(t *testing.T) {
	b := new(base)
	tr := &fence.Transport{Term: term{token: 1<<64 - 1}, Base: b}
	r := request("PUT", "http://accounts/", "5", "6") // of an earlier term, and forged
	if _, err := tr.RoundTrip(r); err != nil {
		t.Fatal(err)
	}
	if got := b.sent[0].Header.Values(fence.Header); len(got) != 1 || got[0] != "18446744073709551615" {
		t.Errorf("it sent %q", got)
	}
	if got := r.Header.Values(fence.Header); len(got) != 2 {
		t.Errorf("it changed the caller's request: %q", got)
	}
}

// A body says whether it was closed.
type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error {
	b.closed = true
	return nil
}

func TestTransportSendsNothingAfterTheTerm(t *testing.T) {
	over := errors.New("the term is over")
	b := new(base)
	client := &http.Client{Transport: &fence.Transport{Term: term{5, over}, Base: b}}
	letter := &body{Reader: strings.NewReader("letter")}
	if _, err := client.Post("http://accounts/", "text/plain", letter); !errors.Is(err, over) {
		t.Errorf("got %v", err)
	}
	if _, err := client.Get("http://accounts/"); !errors.Is(err, over) {
		t.Errorf("without a body: %v", err)
	}
	if len(b.sent) != 0 {
		t.Errorf("it sent %d requests", len(b.sent))
	}
	if !letter.closed {
		t.Error("the body was not closed")
	}
}

// With real terms, a real server, and a leader that does not know yet that it is deposed.
func TestTransportAndHandler(t *testing.T) {
	ctx := t.Context()
	c := memory.New(nil)
	var terms []*elect.Term
	for _, id := range []string{"web-1", "web-2"} {
		b := c.Client(id)
		defer b.Close()
		if len(terms) > 0 {
			c.Remove("reports", terms[0].Member().Key)
		}
		term, err := elect.New(b, "reports", nil).Campaign(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer term.Resign(context.WithoutCancel(ctx))
		terms = append(terms, term)
	}
	server := httptest.NewServer(fence.Handler(new(fence.Checker), nil, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	defer server.Close()
	deposed := term{token: terms[0].Token()} // its Check still returns nil
	send := func(as fence.Term) (*http.Response, error) {
		client := &http.Client{Transport: &fence.Transport{Term: as}}
		resp, err := client.Post(server.URL, "text/plain", strings.NewReader("letter"))
		if err == nil {
			resp.Body.Close()
		}
		return resp, err
	}
	for _, as := range []fence.Term{deposed, terms[1]} {
		if resp, err := send(as); err != nil || resp.StatusCode != 200 || fence.Refused(resp) != nil {
			t.Errorf("%v, %v", resp, err)
		}
	}
	resp, err := send(deposed)
	if err != nil {
		t.Fatal(err)
	}
	wantStale(t, fence.Refused(resp), fence.StaleError{Token: terms[0].Token(), Largest: terms[1].Token()})

	<-terms[0].Context().Done() // now it knows
	if _, err := send(terms[0]); !errors.Is(err, elect.ErrLost) {
		t.Errorf("sent after the end of the term: %v", err)
	}
}

func TestRefused(t *testing.T) {
	for _, s := range []struct {
		code    int
		headers []string
		want    error
	}{
		{412, []string{"7"}, &fence.StaleError{Largest: 7}},
		{412, []string{"0"}, &fence.StaleError{}},
		{412, nil, nil}, // not about tokens
		{412, []string{"seven"}, nil},
		{412, []string{"00"}, nil},
		{412, []string{"7", "9"}, nil},
		{200, []string{"7"}, nil},
		{428, []string{"7"}, nil},
	} {
		resp := &http.Response{StatusCode: s.code, Header: http.Header{fence.Header: s.headers}}
		if err := fence.Refused(resp); !reflect.DeepEqual(err, s.want) {
			t.Errorf("%d %q: %v, want %v", s.code, s.headers, err, s.want)
		}
	}
}
