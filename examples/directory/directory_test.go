package main

import (
	"context"
	"strings"
	"testing"
	"time"
)

func TestDirectory(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out strings.Builder
	if err := run(ctx, &out, "local:"+t.TempDir()); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	const want = `a server
    hello from 10.0.0.1:80
two servers
    hello from 10.0.0.1:80
    hello from 10.0.0.2:80
another setting
    good evening from 10.0.0.1:80
    good evening from 10.0.0.2:80
a server has gone
    good evening from 10.0.0.2:80
`
	if out.String() != want {
		t.Errorf("the run prints\n%s\nwant\n%s", &out, want)
	}
}
