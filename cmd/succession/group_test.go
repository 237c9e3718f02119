//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/succession-dev/succession/cmd/succession/internal/ui"
)

func TestGroup(t *testing.T) {
	url := localURL(t)
	w := start(t, "--url", url, "group", "watch", "-o", "json", "web")
	text := start(t, "--url", url, "group", "watch", "web")
	expect := func(json, plain string) {
		t.Helper()
		w.line(json)
		got, _ := text.next()
		if _, after, _ := strings.Cut(got, "  "); after != plain {
			t.Errorf("text %q, want %q after the time", got, plain)
		}
	}
	expect("[]", "nobody is present")
	checkOutput(t, []string{"--url", url, "group", "list", "web"}, 0, "")
	checkOutput(t, []string{"--url", url, "group", "list", "web", "-o", "json"}, 0, "[]\n")

	p := start(t, "--url", url, "group", "join", "--id", "web-1", "--value", "10.0.0.7:80", "web")
	t1 := p.event("elected").Token
	first := fmt.Sprintf(`{"id":"web-1","value":"10.0.0.7:80","token":%d}`, t1)
	expect("["+first+"]", fmt.Sprintf("web-1 has joined, token %d", t1))
	cmd := command("--url", url, "group", "join", "--id", "web\x1b2", "web", "--", "sh", "-c", `echo "$SUCCESSION_ELECTION $SUCCESSION_TOKEN"; read line; exit 3`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	q := startCommand(t, cmd)
	t2 := q.event("started").Token
	both := fmt.Sprintf(`[%s,{"id":"web\u001b2","token":%d}]`, first, t2)
	expect(both, fmt.Sprintf(`web\u001b2 has joined, token %d`, t2))
	late := start(t, "--url", url, "group", "watch", "web")
	for _, id := range []string{"web-1", `web\u001b2`} {
		if line, _ := late.next(); !strings.Contains(line, id+" is present, token ") {
			t.Errorf("who begins to watch sees %q, want %s", line, id)
		}
	}
	checkOutput(t, []string{"--url", url, "group", "list", "web", "-o", "json"}, 0, both+"\n")
	checkOutput(t, []string{"--url", url, "group", "list", "web"}, 0, fmt.Sprintf(
		"#  ID          TOKEN             VALUE\n1  web-1       %d  10.0.0.7:80\n2  web\\u001b2  %d  \n", t1, t2))

	q.line(fmt.Sprintf("web %d", t2))
	in.Close()
	q.exits(3)
	expect("["+first+"]", fmt.Sprintf(`web\u001b2 has gone, token %d`, t2))
	p.signal(syscall.SIGTERM)
	p.exits(143)
	if got, want := p.rest(), []string{"interrupted", "resigned"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	expect("[]", fmt.Sprintf("web-1 has gone, token %d", t1))
	w.signal(syscall.SIGTERM)
	w.exits(143)
	text.signal(syscall.SIGINT)
	text.exits(130)
}

// A presence that an operator takes away ends the process, or it joins again.
func TestPresenceLost(t *testing.T) {
	folder := t.TempDir()
	remove := func() {
		t.Helper()
		fifos, err := filepath.Glob(filepath.Join(folder, "web-members", "@n_*"))
		if err != nil || len(fifos) != 1 || os.Remove(fifos[0]) != nil {
			t.Fatalf("removing %q, %v", fifos, err)
		}
	}
	for _, cmd := range [][]string{nil, {"--", "sleep", "1000"}} {
		args := []string{"--url", "local:" + folder, "group", "join", "web"}
		p := start(t, append(args, cmd...)...)
		p.event("elected")
		remove()
		p.event("lost")
		p.exits(ui.ExitLost)

		p = start(t, slices.Concat(args[:4], []string{"--restart", "web"}, cmd)...)
		token := p.event("elected").Token
		remove()
		p.event("lost")
		if again := p.event("elected").Token; again <= token {
			t.Errorf("token %d after %d: tokens must grow", again, token)
		}
		p.signal(syscall.SIGTERM)
		p.exits(143)
	}
}

func TestGroupRefuses(t *testing.T) {
	url := localURL(t)
	start(t, "--url", url, "run", "reports-members", "--", "sleep", "1000").event("started")
	for _, tt := range []struct{ args, says string }{
		{"join reports", "used for an election or a lock"},
		{"list reports", "used for an election or a lock"},
		{"watch reports", "used for an election or a lock"},
		{"join web true", "as in: succession group join reports -- CMD"},
		{"join /web", "begins with a slash"},
		{"list", "as in: succession group list web"},
		{"watch a b", "as in: succession group watch web"},
		{"", "succession group list NAME"},
	} {
		code, stdout, stderr := result(t, append([]string{"--url", url, "group"}, strings.Fields(tt.args)...)...)
		lines := strings.Count(stderr, "\n") - strings.Count(stderr, `"event":"coordinator"`)
		if code != ui.ExitFailed || stdout != "" || !strings.Contains(stderr, tt.says) || lines != 1 {
			t.Errorf("group %s: exit code %d, output %q, standard error %q, want %q in it", tt.args, code, stdout, stderr, tt.says)
		}
	}
}
