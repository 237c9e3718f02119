package zookeeper_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/zookeeper"
)

func TestOpen(t *testing.T) {
	b, err := backend.Open(t.Context(), "zookeeper://"+server(t)+chroot(t)+"/sub?session=3s&prefix=guid_&connect=4s&relay=1s")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.TTL() != 3*time.Second {
		t.Errorf("TTL %v", s.TTL())
	}
	if again, err := b.Session(t.Context()); err != nil || again != s {
		t.Errorf("another session: %v", err)
	}
	if m := join(t, s, "e", ""); m.Key != "guid_0000000000" {
		t.Errorf("%+v", m)
	}
	if ok, _, err := raw(t, server(t)).Exists(chroot(t) + "/sub/e/guid_0000000000"); !ok || err != nil {
		t.Errorf("member is not under the chroot: %v", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if !errors.Is(s.Err(), backend.ErrSessionEnded) {
		t.Error(s.Err())
	}
	next, err := b.Session(t.Context())
	if err != nil || next == s {
		t.Errorf("after Close: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, test := range []struct {
		url  string
		want error
		says string
	}{
		{"zookeeper://127.0.0.1:1/x?connect=200ms", backend.ErrUnavailable, "connect"},
		{"zookeeper://no-such-host.invalid/x?connect=300ms", backend.ErrUnavailable, "no-such-host.invalid"},
		{"zookeeper:///x", backend.ErrInvalid, "name the servers"},
		{"zookeeper://h/x?sesion=1s", backend.ErrInvalid, "known are connect, prefix, relay, session"},
		{"zookeeper://h/x?session=ten", backend.ErrInvalid, "session"},
		{"zookeeper://h/x?session=1ms", backend.ErrInvalid, "session"},
		{"zookeeper://h/x?prefix=n1", backend.ErrInvalid, "digit"},
		{"zookeeper://h/x?prefix=a/b", backend.ErrInvalid, "prefix"},
		{"zookeeper://h/x%20y", backend.ErrInvalid, "chroot"},
		{"zookeeper://h/x?relay=9s", backend.ErrInvalid, "relay"},
	} {
		b, err := backend.Open(t.Context(), test.url)
		if err == nil {
			b.Close()
		}
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.url, err)
		}
	}
	if _, err := zookeeper.New(nil, nil); !errors.Is(err, backend.ErrInvalid) {
		t.Error(err)
	}
	if _, err := zookeeper.New([]string{"h:0"}, nil); !errors.Is(err, backend.ErrInvalid) {
		t.Error(err)
	}
}
