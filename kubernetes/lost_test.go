//go:build linux

package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/kubernetes"
)

// A calling is one call of the contract, which takes several requests here, and what must be so afterwards.
type calling struct {
	prepare func(ctx context.Context, s backend.Session, line string) (backend.Member, error)
	call    func(ctx context.Context, s backend.Session, line string, m backend.Member) error
	// may is true if the call may fail with ErrUnavailable, done or not.
	may bool
	// holds says what is wrong after the call, which is done if it returned nil.
	holds func(ctx context.Context, other backend.Session, line string, done bool) error
}

var item = func(ctx context.Context, s backend.Session, line string) (backend.Member, error) {
	return s.Append(ctx, line, "item")
}
var member = func(ctx context.Context, s backend.Session, line string) (backend.Member, error) {
	j, err := s.Join(ctx, line, "x", "")
	return j.Member, err
}

// stands says what is wrong unless so many stand in the line; if the call need not have been done, one more or less may.
func stands(want, undone int) func(context.Context, backend.Session, string, bool) error {
	return func(ctx context.Context, other backend.Session, line string, done bool) error {
		l, err := lineNow(ctx, other, line)
		if err == nil && len(l.Members) != want && (done || len(l.Members) != undone) {
			err = fmt.Errorf("in line stand %+v, want %d", l.Members, want)
		}
		return err
	}
}

func reads(want, undone string) func(context.Context, backend.Session, string, bool) error {
	return func(ctx context.Context, other backend.Session, line string, done bool) error {
		r, err := other.Get(ctx, line+"-record")
		if got := string(r.Value); err == nil && got != want && (done || got != undone) {
			err = fmt.Errorf("the record is %q, want %q", got, want)
		}
		return err
	}
}

var pinned = backend.Header{Fence: 5}

var callings = map[string]calling{
	"Join": {
		call: func(ctx context.Context, s backend.Session, line string, _ backend.Member) error {
			_, err := s.Join(ctx, line, "x", "")
			return err
		},
		holds: stands(1, 1),
	},
	"JoinShared": {
		call: func(ctx context.Context, s backend.Session, line string, _ backend.Member) error {
			_, err := s.JoinShared(ctx, line, "x", "")
			return err
		},
		holds: stands(1, 1),
	},
	"Leave": {
		prepare: member,
		call:    func(ctx context.Context, s backend.Session, _ string, m backend.Member) error { return s.Leave(ctx, m) },
		holds:   stands(0, 0),
	},
	"Pin": {
		prepare: member,
		call: func(ctx context.Context, s backend.Session, _ string, m backend.Member) error {
			return s.Pin(ctx, m, pinned, backend.Absent)
		},
		holds: func(ctx context.Context, other backend.Session, line string, _ bool) error {
			l, err := lineNow(ctx, other, line)
			if err == nil && (len(l.Members) != 1 || !l.Members[0].Pinned || l.Header.Fence < pinned.Fence) {
				err = fmt.Errorf("the line is %+v", l)
			}
			return err
		},
	},
	"Put": {
		prepare: member, may: true,
		call: func(ctx context.Context, s backend.Session, line string, m backend.Member) error {
			_, err := s.Put(ctx, line+"-record", []byte("x"), &backend.If{Version: backend.Absent, Member: m})
			return err
		},
		holds: reads("x", ""),
	},
	"Delete": {
		prepare: func(ctx context.Context, s backend.Session, line string) (backend.Member, error) {
			if _, err := s.Put(ctx, line+"-record", []byte("x"), nil); err != nil {
				return backend.Member{}, err
			}
			return member(ctx, s, line)
		},
		may: true,
		call: func(ctx context.Context, s backend.Session, line string, m backend.Member) error {
			return s.Delete(ctx, line+"-record", &backend.If{Member: m})
		},
		holds: reads("", "x"),
	},
	"Append": {
		may: true,
		call: func(ctx context.Context, s backend.Session, line string, _ backend.Member) error {
			_, err := s.Append(ctx, line, "item")
			return err
		},
		holds: stands(1, 0),
	},
	"Remove": {
		prepare: item, may: true,
		call: func(ctx context.Context, s backend.Session, line string, m backend.Member) error {
			j, err := s.Join(ctx, line+"-claims", "x", "")
			if err != nil {
				return err
			}
			return s.Remove(ctx, m, j.Member)
		},
		holds: stands(0, 1),
	},
	"Claim": {
		prepare: item,
		call: func(ctx context.Context, s backend.Session, line string, m backend.Member) error {
			_, err := s.Claim(ctx, line+"-claims", "x\n"+kit.Subject(m), "", m)
			return err
		},
		holds: func(ctx context.Context, other backend.Session, line string, done bool) error {
			return stands(1, 1)(ctx, other, line+"-claims", done)
		},
	},
}

// Whichever of the requests of a call has its answer lost, the call finds out what has happened, or says that it does not know. With
// a pin that is so also if another client writes the header before it asks.
func TestLostAnswers(t *testing.T) {
	k := sharedKubernetes(t)
	for name, c := range callings {
		for _, written := range []bool{false, true} {
			if written && name != "Pin" {
				continue
			}
			t.Run(fmt.Sprint(name, " written=", written), func(t *testing.T) {
				t.Parallel()
				o := kubernetes.Options{Prefix: coordtest.Name(t), TTL: 10 * time.Second}
				a, b := newClient(t, k, o), newClient(t, k, o)
				ctx := within(t, time.Minute)
				var mu sync.Mutex
				skip, path := -1, "" // of the request whose answer is lost
				meanwhile := func() {}
				a.lost = func(req *http.Request) bool {
					mu.Lock()
					defer mu.Unlock()
					if skip < 0 || req.Method == http.MethodGet || strings.HasSuffix(req.URL.Path, "/"+kubernetes.SessionName(a.Backend)) {
						return false
					}
					if skip--; skip >= 0 {
						return false
					}
					path = req.Method + " " + req.URL.Path
					meanwhile()
					return true
				}
				s, other := a.live(t), b.live(t)
				for n := 0; ; n++ {
					line := fmt.Sprint("line-", n)
					var m backend.Member
					var err error
					if c.prepare != nil {
						if m, err = c.prepare(ctx, s, line); err != nil {
							t.Fatal(err)
						}
					}
					mu.Lock()
					skip, path = n, ""
					if written {
						meanwhile = func() {
							l, err := lineNow(ctx, other, line)
							if err == nil && l.Header == pinned {
								later := pinned
								later.Fence++
								_, err = other.Put(ctx, line, later.Encode(), &backend.If{Version: l.Version})
							}
							if err != nil {
								t.Error(err)
							}
						}
					}
					mu.Unlock()
					err = c.call(ctx, s, line, m)
					mu.Lock()
					lost := path
					skip = -1
					mu.Unlock()
					if err != nil && !(c.may && errors.Is(err, backend.ErrUnavailable)) {
						t.Errorf("%s after the answer to its request %d, %s, was lost: %v", name, n, lost, err)
					} else if wrong := c.holds(ctx, other, line, err == nil); wrong != nil {
						t.Errorf("%s (%v) after the answer to its request %d, %s, was lost: %v", name, err, n, lost, wrong)
					}
					if lost == "" {
						t.Logf("%d requests", n)
						break
					}
				}
			})
		}
	}
}

// A write that its caller has given up is not made anew over what another one has been told was written: whatever it meets when it goes on.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	k := sharedKubernetes(t)
	for _, method := range []string{http.MethodPatch, http.MethodGet} {
		for _, guarded := range []bool{false, true} {
			t.Run(fmt.Sprint(method, " guarded=", guarded), func(t *testing.T) {
				t.Parallel()
				name := coordtest.Name(t)
				cfg, err := configOf(k, k.Addrs()[0], coordtest.KubernetesToken)
				if err != nil {
					t.Fatal(err)
				}
				p := &pausing{reached: make(chan struct{}), letGo: make(chan struct{}), match: func(req *http.Request) bool {
					return req.Method == method && strings.Contains(req.URL.Path, "/record-")
				}}
				cfg.WrapTransport = func(rt http.RoundTripper) http.RoundTripper { p.RoundTripper = rt; return p }
				b, err := kubernetes.New(cfg, &kubernetes.Options{Namespace: "default", TTL: long, ConnectTimeout: long})
				if err != nil {
					t.Fatal(err)
				}
				defer b.Close()
				s, err := b.Session(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				other := newClient(t, k, kubernetes.Options{}).live(t)
				m := join(t, s, name, "x")
				var cond *backend.If
				if guarded {
					cond = &backend.If{Member: m}
				}
				if _, err := s.Put(t.Context(), name+"-record", []byte("first"), cond); err != nil {
					t.Fatal(err)
				}
				ctx, giveUp := context.WithCancel(t.Context())
				gaveUp := make(chan error, 1)
				p.armed.Store(true)
				go func() {
					_, err := s.Put(ctx, name+"-record", []byte("given up"), cond)
					gaveUp <- err
				}()
				<-p.reached
				giveUp()
				if err := <-gaveUp; !errors.Is(err, context.Canceled) {
					t.Errorf("who gives up is told %v", err)
				}
				v, err := other.Put(t.Context(), name+"-record", []byte("told"), nil)
				if err != nil {
					t.Fatal(err)
				}
				close(p.letGo)
				time.Sleep(ttl / 3) // a write made anew would follow at once
				if r, err := other.Get(t.Context(), name+"-record"); err != nil || r.Version != v {
					t.Errorf("the record is %q (%v), and the other one was told that it has written", r.Value, err)
				}
			})
		}
	}
}

// Who waits behind many members of one session that has ended does not ask for each of them.
func TestManyGone(t *testing.T) {
	t.Parallel()
	k := sharedKubernetes(t)
	o := kubernetes.Options{Prefix: coordtest.Name(t), TTL: 10 * time.Second}
	a, b := newClient(t, k, o), newClient(t, k, o)
	var reads atomic.Int64
	b.lost = func(req *http.Request) bool {
		if req.Method == http.MethodGet && req.URL.RawQuery == "" {
			reads.Add(1)
		}
		return false
	}
	x, y := a.live(t), b.live(t)
	for range 20 {
		join(t, x, "e", "x")
	}
	m := join(t, y, "e", "y")
	p, err := y.Ahead(t.Context(), m)
	if err != nil || p.First {
		t.Fatal(p, err)
	}
	if err := a.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	reads.Store(0)
	for !p.First {
		if err := y.WatchPlace(within(t, time.Minute), m, &p); err != nil {
			t.Fatal(err)
		}
	}
	if n := reads.Load(); n > 12 {
		t.Errorf("behind 20 members of a session that has ended %d objects were read, one by one", n)
	} else {
		t.Log(n)
	}
}
