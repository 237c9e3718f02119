//go:build linux

package main

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/calm"
)

// completeBound is how long a shell waits for names at most.
const completeBound = time.Second

// completions returns what a shell is offered for the last of the words, without the descriptions.
func completions(t *testing.T, words ...string) []string {
	t.Helper()
	code, stdout, stderr := here(append([]string{"__complete"}, words...)...)
	if code != 0 || strings.Contains(stderr, "rror") {
		t.Errorf("%q: exit code %d, standard error %q", words, code, stderr)
	}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	var offered []string
	for _, line := range lines[:len(lines)-1] { // the last one is for the script
		word, _, _ := strings.Cut(line, "\t")
		offered = append(offered, word)
	}
	return offered
}

func TestCompletion(t *testing.T) {
	url, _ := lineOf(t, "web-1") // of reports
	for _, r := range []string{"config/a", "config/b", "other"} {
		if code, _, stderr := here("--url", url, "set", r, "1"); code != 0 {
			t.Fatal(stderr)
		}
	}
	for _, tt := range []struct{ typed, want string }{
		{"leader ", "reports"},
		{"leader rep", "reports"},
		{"leader x", ""},
		{"leader reports ", ""},
		{"run --wait 1s ", "reports"},
		{"migrate status ", ""}, // on --from, which is not given
		{"migrate status --from " + url + " ", "reports"},
		{"get config/", "config/a config/b"},
		{"group list ", ""},
		{"version ", ""},
		{"leader --url zoo", "zookeeper://"},
		{"migrate begin --from et", "etcd://"},
		{"run --log ", "text json off"},
		{"leader -o ", "text json"},
		{"conformance --faults s", "sever"},
		{"conformance --faults kill,re", "kill,remove"},
		{"conformance --rule L3.", "L3.*"},
		{"ui --allow ", "resign pause"},
		{"ui --allow resign,", "resign,pause"},
		{"completion ", "bash fish powershell zsh"},
	} {
		watch := calm.Start(t)
		got := completions(t, append([]string{"--url", url}, strings.Split(tt.typed, " ")...)...)
		if len(got) == 0 && tt.want != "" && watch.NotJudged(completeBound, "%q is completed by nothing", tt.typed) {
			continue
		}
		if start, ok := strings.CutSuffix(tt.want, "*"); ok {
			if len(got) < 10 || slices.ContainsFunc(got, func(s string) bool { return !strings.HasPrefix(s, start) }) {
				t.Errorf("%q is completed by %q, want those that begin with %s", tt.typed, got, start)
			}
		} else if !slices.Equal(got, strings.Fields(tt.want)) {
			t.Errorf("%q is completed by %q, want %s", tt.typed, got, tt.want)
		}
	}
	// All that the command knows, and what only its tests know.
	all := []string{"consul://", "etcd://", "full:", "kubernetes://", "late:", "local:", "madeup://", "memory:", "migrate:?from=", "postgres://", "postgresql:", "rival:", "spread:", "zookeeper://"}
	if got := completions(t, "--url", ""); !slices.Equal(got, all) {
		t.Errorf("--url is completed by %q, want %q", got, all)
	}
}

// offers checks that a shell is offered a name of a coordinator. It does not wait long for that, which is not enough on a machine
// that is too busy.
func offers(t *testing.T, want string, words ...string) {
	t.Helper()
	watch := calm.Start(t)
	out, err := printed(append([]string{"__complete"}, words...)...)
	if !strings.Contains(out, want) && !watch.NotJudged(completeBound, "%q offers\n%s", words, out) {
		t.Errorf("%q offers %v\n%s\nwant %q", words, err, out, want)
	}
}

// A shell does not wait long for a coordinator that does not answer, and shows nothing of it.
func TestCompletionIsSilent(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, url := range []string{"etcd://127.0.0.1:1/app", "etcd://" + l.Addr().String() + "/app", "nonsense", "local:/dev/null/x"} {
		began := time.Now()
		code, stdout, stderr := result(t, "--url", url, "__complete", "leader", "")
		if code != 0 || stdout != ":4\n" || strings.Count(stderr, "\n") > 1 { // 4 says: and no files
			t.Errorf("%s: exit code %d, output %q, standard error %q", url, code, stdout, stderr)
		}
		if took := time.Since(began); took > patience { // it is a second on a machine that is not busy
			t.Errorf("%s: took %v", url, took)
		}
	}
}

// There is a manual page for each command, and each names what belongs to it.
func TestManualPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	if code, _, stderr := here("man", dir); code != 0 {
		t.Fatal(stderr)
	}
	for _, cmd := range commands(newRoot()) {
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
		page, err := os.ReadFile(filepath.Join(dir, name+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		text := strings.NewReplacer(`\-`, "-", `\(aq`, "'").Replace(string(page))
		for _, want := range []string{".SH NAME\n" + name + ` - ` + cmd.Short, ".SH SYNOPSIS", ".SH DESCRIPTION", ".SH EXAMPLES", "\\fB--url\\fP"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s.1 lacks %q", name, want)
			}
		}
	}
	if code, _, stderr := here("man"); code != 125 || !strings.Contains(stderr, "want one FOLDER") {
		t.Errorf("without a folder: exit code %d, standard error %q", code, stderr)
	}
}
