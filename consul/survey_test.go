package consul_test

import (
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
)

// A survey says what is read line by line.
func TestSurvey(t *testing.T) {
	t.Parallel()
	b, err := succession.Open("consul://" + server(t) + "/for-a-survey")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	rig.CheckSurvey(t, b)
}

// Without a prefix, all keys of the store are asked for. Consul has no operation of a transaction for that.
func TestEmptyStore(t *testing.T) {
	t.Parallel()
	c := coordtest.NewConsul(t, nil)
	b := openWith(t, &api.Config{Address: c.Addrs()[0], Token: "any"}, nil)
	s := sessionOf(t, b)
	ctx := within(t, time.Minute)
	if lines, err := s.Lines(ctx); err != nil || len(lines) > 0 {
		t.Errorf("Lines returned %v, %v", lines, err)
	}
	if all, err := s.Survey(ctx); err != nil || len(all) > 0 {
		t.Errorf("Survey returned %v, %v", all, err)
	}
}
