//go:build linux

package local_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/local"
)

// prompt is more than anything here takes that does not wait for something.
const prompt = 5 * time.Second

func TestMain(m *testing.M) {
	rig.Candidate()
	if role := os.Getenv(roleVar); role != "" {
		os.Exit(play(role))
	}
	goleak.VerifyTestMain(m)
}

// open returns a backend on dir and its session, and closes them with the test.
func open(t *testing.T, dir string) (*local.Backend, backend.Session) {
	t.Helper()
	return openWith(t, dir, nil)
}

func openWith(t *testing.T, dir string, o *local.Options) (*local.Backend, backend.Session) {
	t.Helper()
	b, err := local.New(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return b, s
}

func join(t *testing.T, s backend.Session, line, value string) backend.Member {
	t.Helper()
	m, err := s.Join(t.Context(), line, value, "")
	if err != nil {
		t.Fatal(err)
	}
	return m.Member
}

func appendItem(t *testing.T, s backend.Session, line, value string) backend.Member {
	t.Helper()
	m, err := s.Append(t.Context(), line, value)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func ahead(t *testing.T, s backend.Session, m backend.Member) backend.Place {
	t.Helper()
	p, err := s.Ahead(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func leave(t *testing.T, s backend.Session, m backend.Member) {
	t.Helper()
	if err := s.Leave(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

// values returns the values of the members of a line, in order.
func values(t *testing.T, s backend.Session, line string) []string {
	t.Helper()
	l, err := s.Line(t.Context(), line)
	if err != nil {
		t.Fatal(err)
	}
	return valuesOf(l)
}

func valuesOf(l backend.Line) (v []string) {
	for _, m := range l.Members {
		v = append(v, m.Value)
	}
	return v
}

// begin runs a call that blocks, and returns the channel of its result.
func begin(call func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	return done
}

// within waits for the end of a call that should end now.
func within(t *testing.T, what string, done <-chan error) error {
	t.Helper()
	watch := calm.Start(t)
	select {
	case err := <-done:
		watch.Within(prompt, "%s", what)
		return err
	case <-time.After(time.Minute):
		t.Fatalf("%s: still blocked after a minute", what)
		return nil
	}
}

// blocked fails when a call that should block has ended. Shorter than prompt, it can
// miss a mistake, but never report one that is none.
func blocked(t *testing.T, what string, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		t.Fatalf("%s returned (%v), want it to block", what, err)
	case <-time.After(50 * time.Millisecond):
	}
}

func fifo(dir string, m backend.Member) string { return filepath.Join(dir, m.Line, "@"+m.Key) }

func TestSuccession(t *testing.T) {
	dir := t.TempDir()
	_, s1 := open(t, dir)
	_, s2 := open(t, dir)
	a := join(t, s1, "app/e", "a")
	b := join(t, s2, "app/e", "b")
	c := join(t, s1, "app/e", "c") // twice in one session
	if a.Position >= b.Position || b.Position >= c.Position {
		t.Fatalf("positions %d, %d, %d do not grow", a.Position, b.Position, c.Position)
	}
	if p := ahead(t, s1, a); !p.First || p.Token != a.Position {
		t.Errorf("the first member: %+v, want it to lead with its position as token", p)
	}
	if p := ahead(t, s1, c); p.First || p.Ahead != b {
		t.Errorf("ahead of the third: %+v, want %+v", p, b)
	}
	if got := values(t, s2, "app/e"); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("line %q", got)
	}

	gone := begin(func() error { return s1.Gone(t.Context(), b) })
	blocked(t, "Gone of a live member", gone)
	leave(t, s2, b)
	if err := within(t, "Gone", gone); err != nil {
		t.Fatal(err)
	}
	if p := ahead(t, s1, c); p.Ahead != a {
		t.Errorf("ahead of the third, after the second left: %+v, want %+v", p, a)
	}
	leave(t, s2, b)
	if _, err := s2.Ahead(t.Context(), b); !errors.Is(err, backend.ErrNotMember) {
		t.Errorf("Ahead after Leave: %v, want ErrNotMember", err)
	}
	if err := s2.Leave(t.Context(), a); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("Leave of another session's member: %v, want it refused", err)
	}
	if got := values(t, s2, "app/e"); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("line %q", got)
	}
	if s1.TTL() != 0 || !s1.Deadline().IsZero() {
		t.Errorf("TTL %v, Deadline %v: want zero", s1.TTL(), s1.Deadline())
	}
}

// TestClose says that the end of a session removes its members, ends its calls and leaves
// nothing behind, and that the backend then opens a new one.
func TestClose(t *testing.T) {
	dir := t.TempDir()
	b1, s1 := open(t, dir)
	_, s2 := open(t, dir)
	m := join(t, s1, "e", "")
	behind := join(t, s2, "e", "")
	own := begin(func() error { return s1.Gone(t.Context(), behind) })
	watch := begin(func() error { _, err := s1.Watch(t.Context(), "r", backend.Absent); return err })
	next := begin(func() error { return s2.Gone(t.Context(), m) })
	blocked(t, "Gone", own)
	if err := s1.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for what, done := range map[string]<-chan error{"Gone": own, "Watch": watch} {
		if err := within(t, what, done); !errors.Is(err, backend.ErrSessionEnded) {
			t.Errorf("%s at the end of its session: %v", what, err)
		}
	}
	if err := within(t, "Gone of the closed session's member", next); err != nil {
		t.Error(err)
	}
	<-s1.Done()
	var wrapped *backend.Error
	if _, err := s1.Join(t.Context(), "e", "", ""); !errors.Is(err, backend.ErrSessionEnded) || !errors.As(err, &wrapped) {
		t.Errorf("Join after Close: %v", err)
	}
	if !errors.Is(s1.Err(), backend.ErrSessionEnded) {
		t.Errorf("Err: %v", s1.Err())
	}
	again, err := b1.Session(t.Context())
	if err != nil || again == s1 {
		t.Fatalf("a new session: %v, %v", again, err)
	}
	if later := join(t, again, "e", ""); later.Position <= behind.Position {
		t.Errorf("position %d after %d", later.Position, behind.Position)
	}
	for range 2 {
		if err := b1.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := b1.Session(t.Context()); !errors.Is(err, backend.ErrClosed) {
		t.Errorf("Session after Close: %v", err)
	}
}

// TestLayout says that names cannot collide, whatever they are.
func TestLayout(t *testing.T) {
	dir := t.TempDir()
	_, s := open(t, dir)
	long := strings.Repeat("x", backend.MaxName)
	deep := strings.Repeat("y/", backend.MaxName/2) + "z"
	names := []string{"a", "a/b", "a/b/c", "state", "a/state", "lock", "counter", "n_0000000001", "a/n_0000000001", "-rf", "..a", long, deep}
	for _, name := range names {
		join(t, s, name, name)
		if _, err := s.Put(t.Context(), name, []byte(name), nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		if got := values(t, s, name); !slices.Equal(got, []string{name}) {
			t.Errorf("line of %q: %q", name, got)
		}
		if r, err := s.Get(t.Context(), name); err != nil || string(r.Value) != name {
			t.Errorf("record %q: %q, %v", name, r.Value, err)
		}
	}
	for _, name := range []string{"", "/a", "a/", "a//b", ".", "a/../b", "@state", "a b"} {
		if _, err := s.Join(t.Context(), name, "", ""); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("Join of %q: %v, want ErrInvalid", name, err)
		}
	}
}

// TestPin walks through a seal: the pinned member outlives its session, holds up
// those behind it, and can be removed by anybody.
func TestPin(t *testing.T) {
	dir := t.TempDir()
	b1, s1 := open(t, dir)
	_, s2 := open(t, dir)
	leader := join(t, s1, "e", "leader")
	waiter := join(t, s2, "e", "waiter")
	gone := begin(func() error { return s2.Gone(t.Context(), leader) })
	ctx := t.Context()

	if err := s2.Pin(ctx, leader, backend.Header{}, backend.Absent); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("Pin of another session's member: %v", err)
	}
	if err := s1.Pin(ctx, leader, backend.Header{}, 7); !errors.Is(err, backend.ErrVersion) {
		t.Errorf("Pin on a wrong version: %v", err)
	}
	h := backend.Header{Fence: 100, Sealed: "etcd://h"}
	for range 2 { // the second changes nothing
		if err := s1.Pin(ctx, leader, h, backend.Absent); err != nil {
			t.Fatal(err)
		}
	}
	if err := within(t, "Gone of a member that is pinned meanwhile", gone); err != nil {
		t.Error(err)
	}
	if p := ahead(t, s1, leader); !p.First || p.Token != 100+leader.Position {
		t.Errorf("the sealer: %+v", p)
	}
	leader.Pinned = true
	gone = begin(func() error { return s2.Gone(t.Context(), leader) })
	blocked(t, "Gone of a pinned member", gone)
	if err := b1.Close(); err != nil {
		t.Fatal(err)
	}
	blocked(t, "Gone of a pinned member whose session ended", gone)
	var sealed *backend.SealedError
	if _, err := s2.Ahead(ctx, waiter); !errors.As(err, &sealed) || sealed.To != "etcd://h" {
		t.Errorf("Ahead behind a seal: %v", err)
	}
	l, err := s2.Line(ctx, "e")
	if err != nil || l.Header != h || len(l.Members) != 2 || !l.Members[0].Pinned {
		t.Fatalf("line %+v, %v", l, err)
	}
	if _, err := s2.Put(ctx, "e", backend.Header{Fence: 100}.Encode(), &backend.If{Version: l.Version, Member: l.Members[0]}); err != nil {
		t.Fatal(err)
	}
	if p := ahead(t, s2, waiter); p.Ahead.Position != leader.Position || !p.Ahead.Pinned {
		t.Errorf("behind a gate: %+v", p)
	}
	late := begin(func() error { return s2.Gone(ctx, leader) })
	blocked(t, "Gone of a pinned member", late)
	leave(t, s2, leader)
	for _, done := range []<-chan error{gone, late} {
		if err := within(t, "Gone of a pinned member that was removed", done); err != nil {
			t.Error(err)
		}
	}
	if p := ahead(t, s2, waiter); !p.First || p.Token != 100+waiter.Position {
		t.Errorf("after the gate: %+v", p)
	}
}
