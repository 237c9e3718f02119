//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/recipes/queue"
)

// queueURL returns the URL of a new coordinator on which the queue "mails" has these items.
func queueURL(t *testing.T, items ...string) string {
	t.Helper()
	url := localURL(t)
	if len(items) > 0 {
		checkOutput(t, slices.Concat([]string{"--url", url, "queue", "put", "mails", "--"}, items), 0, "")
	}
	return url
}

// listed returns the items of the queue "mails".
func listed(t *testing.T, url string) (items []item, values string) {
	t.Helper()
	_, stdout, stderr := here("--url", url, "queue", "list", "mails", "-o", "json")
	if err := json.Unmarshal([]byte(stdout), &items); err != nil {
		t.Fatalf("%v: output %q, standard error %q", err, stdout, stderr)
	}
	for _, i := range items {
		values += i.Value + " "
	}
	return items, strings.TrimSpace(values)
}

func TestTakeExitCodes(t *testing.T) {
	for _, tt := range []struct {
		name   string
		args   []string
		want   int
		stdout string
		says   string // on standard error
		left   string // of the items a, b, c
	}{
		{"done", []string{"mails", "--", "true"}, 0, "", `"confirmed"`, "b c"},
		{"tried", []string{"--try", "mails", "--", "true"}, 0, "", `"confirmed"`, "b c"},
		{"failed", []string{"mails", "--", "sh", "-c", "exit 3"}, 3, "", `"returned"`, "a b c"},
		{"killed", []string{"mails", "--", "sh", "-c", "kill -KILL $$"}, 137, "", `"returned"`, "a b c"},
		{"not found", []string{"mails", "--", "no-such-program"}, 127, "", "not found", "a b c"},
		{"input", []string{"mails", "--", "cat"}, 0, "a\n", "", "b c"},
		{"environment", []string{"mails", "--", "sh", "-c", `echo "$SUCCESSION_ELECTION $SUCCESSION_ITEM"; test -n "$SUCCESSION_ITEM_ID"`}, 0, "mails a\n", "", "b c"},
		{"printed", []string{"mails"}, 0, "a\n", "", "b c"},
		{"nothing, tried", []string{"--try", "other"}, 1, "", `no item to take from "other"`, "a b c"},
		{"nothing, tried with a command", []string{"-n", "-E", "9", "other", "--", "true"}, 9, "", "no item to take", "a b c"},
		{"nothing, waited for", []string{"-E", "9", "--wait", "500ms", "other"}, 9, "", "for 500ms", "a b c"},
		{"nothing, waited for with a command", []string{"--wait", "500ms", "other", "--", "true"}, 1, "", "for 500ms", "a b c"},
		{"no dashes", []string{"mails", "true"}, 125, "", "as in: succession queue take reports -- CMD", "a b c"},
		{"no command", []string{"mails", "--"}, 125, "", "no command", "a b c"},
		{"no name", nil, 125, "", `write "--" before`, "a b c"},
		{"bad name", []string{"/mails"}, 125, "", "begins with a slash", "a b c"},
		{"impossible code", []string{"-E", "256", "mails"}, 125, "", "0 to 255", "a b c"},
		{"output of a command", []string{"-o", "json", "mails", "--", "true"}, 125, "", "without CMD", "a b c"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url := queueURL(t, "a", "b", "c")
			code, stdout, stderr := result(t, append([]string{"--url", url, "queue", "take"}, tt.args...)...)
			if code != tt.want || stdout != tt.stdout || !strings.Contains(stderr, tt.says) {
				t.Errorf("exit code %d, want %d; output %q, want %q; standard error %q, want %q in it", code, tt.want, stdout, tt.stdout, stderr, tt.says)
			}
			if _, left := listed(t, url); left != tt.left {
				t.Errorf("the items %s are left, want %s", left, tt.left)
			}
		})
	}
}

// A line that was not read to its end, because of an error, is no item.
func TestLinesOfInput(t *testing.T) {
	for _, tt := range []struct {
		in   io.Reader
		want []string
		err  string
	}{
		{strings.NewReader("a\nb\n"), []string{"a", "b"}, ""},
		{strings.NewReader("a\n\nb"), []string{"a", "", "b"}, ""},
		{strings.NewReader("a\r\nb\r"), []string{"a\r", "b\r"}, ""},
		{strings.NewReader(""), nil, ""},
		{io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(errors.New("broken"))), []string{"a"}, "standard input: broken"},
		{strings.NewReader("a\n" + strings.Repeat("x", maxLine) + "\nb\n"), []string{"a"}, "standard input: a line is too long"},
	} {
		var got []string
		err := eachLine(t.Context(), tt.in)(func(line string) error {
			got = append(got, line)
			return nil
		})
		if !slices.Equal(got, tt.want) || (err == nil) != (tt.err == "") || err != nil && !strings.HasPrefix(err.Error(), tt.err) {
			t.Errorf("got %.80q, %v; want %q, %s", got, err, tt.want, tt.err)
		}
	}
}

func TestPut(t *testing.T) {
	long := strings.Repeat("x", queue.MaxValue+1)
	for _, tt := range []struct {
		name  string
		args  []string
		input string
		want  int
		says  string
		items string
	}{
		{"values", []string{"mails", "a", "b c", "", "d"}, "", 0, "", "a b c  d"},
		{"hyphens", []string{"mails", "--", "-a", "--b"}, "", 0, "", "-a --b"},
		{"a hyphen without dashes", []string{"mails", "-a"}, "", 125, `write "--" before`, ""},
		{"lines", []string{"mails", "-"}, "a\nb c\nd", 0, "", "a b c d"},
		{"no lines", []string{"mails", "-"}, "", 0, "", ""},
		{"limit", []string{"--limit", "2", "mails", "a", "b", "c"}, "", ui.ExitRefused, "2 items put", "a b"},
		{"limit of lines", []string{"--limit", "1", "mails", "-"}, "a\nb\n", ui.ExitRefused, "its Limit is 1; 1 item put", "a"},
		{"no limit", []string{"--limit", "0", "mails", "a"}, "", 125, "--limit 0", ""},
		{"too long", []string{"mails", "a", long}, "", 125, "at most 4069 are possible", "a"},
		{"line too long", []string{"mails", "-"}, "a\n" + strings.Repeat(long, 20), 125, "a line is too long", "a"},
		{"no value", []string{"mails"}, "", 125, "want a NAME and a VALUE", ""},
		{"bad name", []string{"/mails", "a"}, "", 125, "begins with a slash", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url := localURL(t)
			cmd := command(append([]string{"--url", url, "queue", "put"}, tt.args...)...)
			cmd.Stdin = strings.NewReader(tt.input)
			out, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != tt.want || !strings.Contains(string(out), tt.says) || strings.Count(string(out), "\n") != min(code, 1) {
				t.Errorf("exit code %d, want %d; output %q, want %q in it", code, tt.want, out, tt.says)
			}
			if _, items := listed(t, url); items != tt.items {
				t.Errorf("the items are %q, want %q", items, tt.items)
			}
		})
	}
}

// What a producer writes is put line by line, and not only when it ends. Who interrupts that hears how many items are put.
func TestPutStreams(t *testing.T) {
	url := queueURL(t)
	cmd := command("--url", url, "queue", "put", "mails", "-")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	put := startCommand(t, cmd)
	for _, item := range []string{"a", "b"} {
		taker := start(t, "--url", url, "queue", "take", "mails")
		if _, err := in.Write([]byte(item + "\n")); err != nil {
			t.Fatal(err)
		}
		taker.line(item)
		taker.exits(0)
	}
	put.signal(syscall.SIGINT)
	put.exits(130)
	put.rest()
	if said := put.stderr.String(); !regexp.MustCompile(`^succession: interrupted by SIGINT; (1 item|2 items) put\n$`).MatchString(said) { // the answer for b may come later
		t.Errorf("it says %q", said)
	}
}

func TestQueueList(t *testing.T) {
	url := queueURL(t, "a", "b\x1b")
	taker := start(t, "--url", url, "queue", "take", "--id", "web-1", "mails", "--", "sleep", "1000")
	token := taker.event("started").Token
	items, _ := listed(t, url)
	if len(items) != 2 || items[0].Taker != "web-1" || items[0].Token != token || items[1].Taker != "" || items[1].Token != 0 || items[1].Position <= items[0].Position {
		t.Fatalf("items %+v, want that web-1 has the first with the token %d", items, token)
	}
	_, stdout, _ := here("--url", url, "queue", "list", "mails")
	want := fmt.Sprintf("#  ID                          TAKER  TOKEN             ITEM\n1  %s  web-1  %d  a\n2  %s                           b\\u001b\n", items[0].ID, token, items[1].ID)
	if stdout != want {
		t.Errorf("output\n%s\nwant\n%s", stdout, want)
	}
	checkOutput(t, []string{"--url", url, "queue", "list", "other"}, 0, "")
	checkOutput(t, []string{"--url", url, "queue", "list", "other", "-o", "json"}, 0, "[]\n")
	checkOutput(t, []string{"--url", url, "queue", "list"}, ui.ExitFailed, "")

	code, stdout, _ := result(t, "--url", url, "queue", "take", "mails", "-o", "json")
	var taken item
	if err := json.Unmarshal([]byte(stdout), &taken); code != 0 || err != nil || taken.Token <= token {
		t.Errorf("exit code %d, output %q, %v", code, stdout, err)
	}
	if taken.Token = 0; taken != items[1] {
		t.Errorf("took %+v, want %+v", taken, items[1])
	}
	taker.signal(syscall.SIGTERM)
	taker.exits(143)
	if got := taker.rest(); got[len(got)-1] != "returned" {
		t.Errorf("events %q, want that the item was returned", got)
	}
	if _, left := listed(t, url); left != "a" {
		t.Errorf("the items %s are left, want a", left)
	}
}

// An item with several lines, or with a zero byte, comes as it is.
func TestTakeAnyText(t *testing.T) {
	url := queueURL(t, "a\nb")
	cmd := command("--url", url, "queue", "put", "mails", "-")
	cmd.Stdin = strings.NewReader("c\x00d")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{"a\nb\n<a\nb>\n", "c\x00d\n<>\n"} {
		code, stdout, stderr := result(t, "--url", url, "queue", "take", "mails", "--", "sh", "-c", `cat; echo "<$SUCCESSION_ITEM>"`)
		if code != 0 || stdout != want {
			t.Errorf("exit code %d, output %q, want %q; standard error %s", code, stdout, want, stderr)
		}
	}
}

// What could not be printed is not confirmed.
func TestTakeCannotPrint(t *testing.T) {
	url := queueURL(t, "a")
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	cmd := command("--url", url, "queue", "take", "mails")
	cmd.Stdout = full
	cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != ui.ExitFailed {
		t.Errorf("exit code %d, want %d", code, ui.ExitFailed)
	}
	if items, left := listed(t, url); left != "a" || items[0].Taker != "" {
		t.Errorf("the items are %+v, want a, which is free", items)
	}
}

func TestTakingLeavesTheLineOnSignals(t *testing.T) {
	url := queueURL(t)
	waiter := start(t, "--url", url, "queue", "take", "mails", "--", "echo", "never")
	waiter.event("turn")
	waiter.signal(syscall.SIGTERM)
	waiter.exits(143)
	waiter.nothingLeft()
	checkOutput(t, []string{"--url", url, "queue", "put", "mails", "a"}, 0, "")
	if items, _ := listed(t, url); len(items) != 1 || items[0].Taker != "" {
		t.Errorf("the items are %+v, want one that is free", items)
	}
}

// removeClaims is a command that takes away the claims of the queue "mails" as an operator would.
func removeClaims(url string) string {
	return "rm " + filepath.Join(strings.TrimPrefix(url, "local:"), "mails-claims", "@n_*")
}

// Where the claim is lost the command ends, and the item is there for another, also when the
// command has ended by itself with exit code 0.
func TestTakeLost(t *testing.T) {
	for _, script := range []string{"sleep 1000", "exit 0"} {
		t.Run(script, func(t *testing.T) {
			url := queueURL(t, "a")
			p := start(t, "--url", url, "queue", "take", "mails", "--", "sh", "-c", removeClaims(url)+"; "+script)
			p.exits(ui.ExitLost)
			p.nothingLeft()
			if items, left := listed(t, url); left != "a" || items[0].Taker != "" {
				t.Errorf("the items are %+v, want a, which is free", items)
			}
		})
	}
}

// After kill -9 the item is nobody else's before the guard has killed the command.
func TestItemIsHeldUntilTheCommandIsDead(t *testing.T) {
	url, log := queueURL(t, "a"), filepath.Join(t.TempDir(), "log")
	take := func(id, script string) *process {
		cmd := command("--url", url, "queue", "take", "--id", id, "mails", "--", "sh", "-c", script)
		cmd.Env = append(cmd.Env, "LOG="+log)
		return startCommand(t, cmd)
	}
	first := take("web-1", writes)
	_, guard := first.pids()
	second := take("web-2", follows)
	second.event("turn")

	adopt(t)
	kill(t, guard, syscall.SIGSTOP) // it takes its time
	t.Cleanup(func() { syscall.Kill(guard, syscall.SIGCONT) })
	first.signal(syscall.SIGKILL)
	first.exits(-9)
	second.waits("while the command of the killed taker runs")
	kill(t, guard, syscall.SIGCONT)
	second.line("runs")
	first.nothingLeft()
	second.exits(0)
	takesTurns(t, log, "web-1", "web-2")
	if _, err := unix.Wait4(guard, nil, 0, nil); err != nil {
		t.Error(err)
	}
}
