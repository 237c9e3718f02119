//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/postgres"
)

// printed runs the command, and returns what it prints.
func printed(args ...string) (string, error) {
	out, err := command(args...).CombinedOutput()
	return string(out), err
}

// The command knows PostgreSQL by what its driver brings, and by nothing else.
func TestPostgres(t *testing.T) {
	t.Parallel()
	p := coordtest.NewPostgres(t, nil)
	addr := p.Addrs()[0]
	url := "postgres://" + addr + "/postgres?user=postgres&sslmode=disable&connect=30s"
	prints := func(want string, args ...string) {
		t.Helper()
		if out, err := printed(args...); err != nil || !strings.Contains(out, want) {
			t.Errorf("succession %s: %v\n%s\nwant %q", strings.Join(args, " "), err, out, want)
		}
	}
	fails := func(want string, args ...string) {
		t.Helper()
		watch := calm.Start(t)
		out, err := printed(args...)
		if (err == nil || !strings.Contains(out, want)) && !watch.NotJudged(probeBound, "%q says %s", args, out) {
			t.Errorf("succession %s: %v\n%s\nwant %q", strings.Join(args, " "), err, out, want)
		}
	}

	schema, err := postgres.Schema("jobs")
	if err != nil {
		t.Fatal(err)
	}
	prints(schema, "postgres", "schema", "--url", "postgres://h1/app?schema=jobs")
	fails("not of PostgreSQL", "postgres", "schema", "--url", "etcd://h1")
	fails("unknown parameter", "postgres", "schema", "--url", "postgres://h1/app?schma=jobs")
	prints(`GRANT EXECUTE ON FUNCTION "succession".join(`, "rights", "e", "--url", "postgres://h1/app?user=app")
	prints("postgres://", "__complete", "get", "--url", "postg")

	prints("", "set", "greeting", "hello", "--url", url, "--timeout", "1m")
	prints("hello", "get", "greeting", "--url", url, "--timeout", "1m")
	prints("hello", "get", "greeting", "--url", strings.Replace(url, "postgres:", "postgresql:", 1), "--timeout", "1m")
	prints("led", "run", "e", "--url", url, "--timeout", "1m", "--", "echo", "led")
	// A program in any language guards its transactions by the position, which is not the token where the fence was raised.
	prints("", "fence", "e", "--at-least", "1000", "--url", url, "--timeout", "1m")
	host, port, _ := strings.Cut(addr, ":")
	prints("COMMIT", "run", "e", "--url", url, "--timeout", "1m", "--", "sh", "-c",
		`exec psql -v ON_ERROR_STOP=1 -h `+host+` -p `+port+` -U postgres -c BEGIN -c "SELECT succession.guard('$SUCCESSION_ELECTION', $SUCCESSION_POSITION)" -c COMMIT`)
	prints("", "set", "app/greeting", "hello", "--url", url, "--timeout", "1m")
	offers(t, "app/greeting", "get", "--url", url, "app/gr")

	// What is at an address, and what is not.
	fails("PostgreSQL", "get", "greeting", "--url", "etcd://"+addr)
	fails("server refused TLS", "get", "greeting", "--url", strings.Replace(url, "sslmode=disable&connect=30s", "sslmode=require", 1))
	fails("nothing listens", "get", "greeting", "--url", "postgres://"+coordtest.Refused(t)+"/postgres?user=postgres")

	conformsInShort(t, url+"&ttl=2s")
}

// conformsInShort exercises a few rules.
func conformsInShort(t *testing.T, url string) {
	t.Helper()
	out, err := printed("conformance", "--url", url, "--faults", "all", "--rule", "L1.end", "--rule", "L1.lost-answer", "--rule", "L3.cut", "--rule", "Fault.mute")
	if judged(t, out) && err != nil || !strings.Contains(out, " 0 failed") {
		t.Errorf("the suite: %v\n%s", err, out)
	}
}
