//go:build linux

package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// Members that came by an import block an election. They are found, nothing else is taken for one, and they
// are removed, but not where the election has moved.
func TestGhosts(t *testing.T) {
	t.Parallel()
	addr := coordtest.NewConsul(t, nil).Addrs()[0]
	url := "consul://" + addr + "/app?connect=30s"
	key := func(line, end string) string { return line + "/00000000-0000-0000-0000-00000000000" + end }
	put := func(key, value string) { // as an import does
		t.Helper()
		req, err := http.NewRequest(http.MethodPut, "http://"+addr+"/v1/kv/app/"+key, strings.NewReader(value))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	b, err := succession.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	check := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	gate, err := s.Join(t.Context(), "paused", "gate", "")
	check(gate, err)
	check(nil, s.Pin(t.Context(), gate.Member, backend.Header{}, 0))
	check(s.Append(t.Context(), "mails", "an item"))
	checkOutput(t, []string{"--url", url, "ghosts"}, 0, "")

	put(key("reports", "1"), "web-1")
	put(key("moved", "2"), "web-2")
	put(key("mails-items", "3"), "an item")
	check(s.Put(t.Context(), "moved", backend.Header{Sealed: "etcd://h:2379"}.Encode(), nil))
	checkOutput(t, []string{"--url", url, "leader", "reports"}, 1, "")
	checkOutput(t, []string{"--url", url, "ghosts"}, 1, "LINE     KEY                                   VALUE  STATE\n"+
		"moved    00000000-0000-0000-0000-000000000002  web-2  stands\n"+
		"reports  00000000-0000-0000-0000-000000000001  web-1  stands\n")
	checkOutput(t, []string{"--url", url, "ghosts", "--remove"}, 125, "LINE     KEY                                   VALUE  STATE\n"+
		"moved    00000000-0000-0000-0000-000000000002  web-2  stands\n"+
		"reports  00000000-0000-0000-0000-000000000001  web-1  removed\n")
	checkOutput(t, []string{"--url", url, "ghosts", "reports"}, 0, "")
	checkOutput(t, []string{"--url", url, "ghosts", "mails-items", "-o", "json"}, 1,
		`[{"line":"mails-items","key":"00000000-0000-0000-0000-000000000003","value":"an item","removed":false}]`+"\n")
	for line, want := range map[string]int{"reports": 0, "paused": 1, "mails": 1, "mails-items": 1} {
		if l, err := s.Line(t.Context(), line); err != nil || len(l.Members) != want {
			t.Errorf("%s has %+v, %v; want %d", line, l.Members, err, want)
		}
	}
	memory, _ := inMemory(t)
	code, _, stderr := here("--url", memory, "ghosts")
	if code != 125 || !strings.Contains(stderr, "cannot tell") {
		t.Errorf("on a coordinator that cannot tell: exit code %d, %q", code, stderr)
	}
}

// unlisted knows which members no session has joined, and lists no lines.
type unlisted struct{ backend.Session }

func (unlisted) Imported(context.Context, string) ([]backend.Member, error) { return nil, nil }

func (unlisted) Lines(context.Context) (map[string]int, error) { return nil, backend.ErrDenied }

// Where it is not known whether there are any, nothing is printed that says so.
func TestGhostsUnknown(t *testing.T) {
	_, s, _ := standing(t, "web-1")
	for _, tt := range []struct {
		names []string
		err   error
		want  string
	}{{nil, backend.ErrDenied, ""}, {[]string{"reports"}, nil, "[]\n"}} {
		var out strings.Builder
		found, err := ghostsOf(t.Context(), unlisted{s}, tt.names, false)
		if !errors.Is(err, tt.err) || printGhosts(&out, ui.AsJSON, found) != nil || out.String() != tt.want {
			t.Errorf("of %q: %v, and %q is printed; want %q", tt.names, err, &out, tt.want)
		}
	}
}
