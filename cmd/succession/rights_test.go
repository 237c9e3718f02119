package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/succession-dev/succession/backend/coordinator"
)

// The command prints the policy of the coordinator and the prefix that the URL names, and asks nobody.
func TestRights(t *testing.T) {
	for url, want := range map[string]string{
		"etcd://127.0.0.1:1/app":              "etcdctl role grant-permission candidate readwrite app/jobs/ --prefix\n",
		"consul://127.0.0.1:1/app?node=a":     "session \"a\" { policy = \"write\" }\n",
		"zookeeper://127.0.0.1:1/app?ttl=10s": "create /app/jobs \"\" CANDIDATE:crwd,",
	} {
		var out, errs bytes.Buffer
		if code := execute([]string{"rights", "--url", url, "jobs"}, &out, &errs); code != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: exit code %d: %s%s", url, code, out.String(), errs.String())
		}
	}
	var out, errs bytes.Buffer
	for _, url := range []string{
		"etcd://h1/a b", "etcd://h1/a$(id)", "zookeeper://h1/a%0Ab", "consul:///a%22b",
		// What is misspelled would grant the rights to somebody else, or on something else.
		"etcd://h1/a?usr=x", "zookeeper://h1/a?usr=x", "consul:///a?nod=x", "consul:///a?agent-node=yes", "postgres://h1/a?usr=x", "postgres://h1/a?schema=X",
		"kubernetes://a?contxt=x", "kubernetes://A",
	} {
		out.Reset()
		if code := execute([]string{"rights", "--url", url, "jobs"}, &out, &errs); code == 0 || out.Len() > 0 {
			t.Errorf("%s: exit code %d, and it prints what means something else:\n%s", url, code, &out)
		}
	}
	if code := execute([]string{"rights", "--url", "local:", "jobs"}, &out, &errs); code == 0 || !strings.Contains(errs.String(), "no rights of its own") {
		t.Errorf("local: exit code %d: %s", code, errs.String())
	}
}

// madeUpScheme is that of a driver that nothing but these tests knows of. There is no page about it.
const madeUpScheme = "madeup"

// The page of each coordinator shows what the command prints.
func TestRightsOnThePages(t *testing.T) {
	t.Setenv("PGUSER", "app") // whom PostgreSQL's own clients would take, too
	for _, d := range coordinator.DefaultMux.Drivers() {
		if d.Rights == nil || d.Scheme == madeUpScheme || d.Example == "" { // a second name of the same
			continue
		}
		u, err := coordinator.ParseURL(d.Scheme + "://prod/app") // a host, or a namespace
		if err != nil {
			t.Fatal(err)
		}
		page := "../../docs/" + d.Scheme + ".md"
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		rights, err := d.Rights(u, "jobs")
		if err != nil {
			t.Fatal(err)
		}
		if want := rights + "```\n"; !strings.Contains(string(text), "\n"+want) {
			t.Errorf("%s lacks\n%s", page, want)
		}
	}
}
