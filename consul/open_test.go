package consul_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/consul"
)

func TestOpenRefuses(t *testing.T) {
	addr := server(t)
	tests := []struct {
		url, says string
		is        error
	}{
		{"consul://" + addr + "?tll=15s", `unknown parameter "tll"`, backend.ErrInvalid},
		{"consul://" + addr + "?ttl=1ms", "TTL", backend.ErrInvalid},
		{"consul://" + addr + "?ttl=25h", "TTL", backend.ErrInvalid},
		{"consul://" + addr + "/a//b", "empty segment", backend.ErrInvalid},
		{"consul://" + addr + "//a", "begins with a slash", backend.ErrInvalid},
		{"consul://" + addr + "/a//", "ends with a slash", backend.ErrInvalid},
		{"consul://" + addr + "/a/./b", "a segment must not be .", backend.ErrInvalid},
		{"consul://" + addr + "/a/../b", "a segment must not be ..", backend.ErrInvalid},
		{"consul://" + addr + "/%2e%2e/b", "a segment must not be ..", backend.ErrInvalid},
		{"consul://" + addr + "/a%2f%2fb", "empty segment", backend.ErrInvalid},
		{"consul://" + addr + "/a%20b", "not possible", backend.ErrInvalid},
		{"consul://h1,h2/app", "name one agent", backend.ErrInvalid},
		{"consul://" + addr + "?token-env=NO_SUCH_VARIABLE", "NO_SUCH_VARIABLE", backend.ErrInvalid},
		{"consul://" + addr + "?token-file=/no/such/file", "/no/such/file", backend.ErrInvalid},
		{"consul://" + addr + "?tls=yes", "tls", backend.ErrInvalid},
		{"consul://" + addr + "?agent-node=yes", "agent-node", backend.ErrInvalid},
		{"consul://" + addr + "?agent-node=on&node=mine", "leave out node", backend.ErrInvalid},
		{"consul://" + addr + "?token-file=/no/such&token-env=HOME", "give one of them", backend.ErrInvalid},
		{"consul://" + addr + "?ca-file=/no/such/file", "/no/such/file", backend.ErrInvalid},
		{"consul://" + addr + "?namespace=x", "Enterprise", backend.ErrInvalid},
	}
	for _, tt := range tests {
		b, err := succession.Connect(t.Context(), tt.url)
		if err == nil {
			b.Close()
		}
		if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: got error %v, want %v that says %q", tt.url, err, tt.is, tt.says)
		}
	}
	if _, err := consul.New(&api.Config{WaitTime: time.Second}, nil); !errors.Is(err, backend.ErrInvalid) {
		t.Errorf("New with a WaitTime returned %v", err)
	}
}

func TestPrefix(t *testing.T) {
	addr := server(t)
	b, err := succession.Connect(t.Context(), "consul://"+addr+"/test/deep?ttl=15s&connect=1m&node=another")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	s := sessionOf(t, b)
	m := join(t, s, "e", "")
	if _, err := s.Put(t.Context(), "e", nil, nil); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"test/deep/e", "test/deep/e/" + m.Key} {
		if position(t, addr, key) == 0 {
			t.Errorf("there is no key %s", key)
		}
	}
	entry, _, err := admin(t, addr).Session().Info(m.Key, nil)
	if err != nil || entry == nil || entry.Node != "another" {
		t.Errorf("the session is %+v, %v", entry, err)
	}
}

// New does not change the configuration of its caller.
func TestNewLeavesConfigAlone(t *testing.T) {
	cfg := &api.Config{Address: "http://" + server(t)}
	before := *cfg
	b, err := consul.New(cfg, &consul.Options{TTL: long})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	sessionOf(t, b)
	if !reflect.DeepEqual(*cfg, before) {
		t.Errorf("New changed the configuration to %+v", cfg)
	}
}
