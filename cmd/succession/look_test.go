//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/local"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/postgres"
)

// inMemory returns a new coordinator of this process and its URL. Its first
// member has the position 1.
func inMemory(t *testing.T) (url string, c *memory.Coordinator) {
	t.Helper()
	coordinatorsMade++
	name := fmt.Sprintf("look-%d", coordinatorsMade)
	c, err := memory.Named(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return "memory:" + name, c
}

var coordinatorsMade int // made so far; they live as long as the process

// lineOf lets candidates with these ids stand in line for "reports" on a new
// coordinator; the first one leads.
func lineOf(t *testing.T, ids ...string) (url string, leader *elect.Term) {
	t.Helper()
	url, c := inMemory(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{}, len(ids))
	for _, id := range ids {
		stands := make(chan struct{})
		b := c.Client(id)
		e := elect.New(b, "reports", &elect.Options{ID: id, Value: "http://" + id, Trace: func(ev trace.Event) {
			if ev.Kind == trace.Joined {
				close(stands)
			}
		}})
		won := make(chan *elect.Term, 1)
		go func() {
			defer func() { ended <- struct{}{} }()
			defer b.Close()
			term, err := e.Campaign(ctx)
			won <- term
			if err == nil {
				<-ctx.Done()
				term.Resign(ctx)
			}
		}()
		<-stands
		if leader == nil {
			leader = <-won
		}
	}
	t.Cleanup(func() {
		cancel()
		for range ids {
			<-ended
		}
	})
	return url, leader
}

func checkOutput(t *testing.T, args []string, wantCode int, want string) {
	t.Helper()
	code, stdout, stderr := here(append([]string{"--timeout", "1m"}, args...)...)
	if code != wantCode || stdout != want {
		t.Errorf("%s: exit code %d, want %d; output\n%s\nwant\n%s\nstandard error: %s", args, code, wantCode, stdout, want, stderr)
	}
}

func TestLooking(t *testing.T) {
	url, _ := lineOf(t, "web-1", "web-2", "web-3")
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"leader reports", 0, "web-1\n"},
		{"leader reports -o json", 0, `{"id":"web-1","value":"http://web-1","key":"n_0000000000","token":1,"acknowledged":false}` + "\n"},
		{"leader nobody", 1, ""},
		{"leader nobody -o json", 1, "null\n"},
		{"line nobody", 0, ""},
		{"line nobody -o json", 0, "[]\n"},
		{"line reports -o json", 0, `[{"id":"web-1","value":"http://web-1","key":"n_0000000000","token":1,"acknowledged":false,"state":"leader"},` +
			`{"id":"web-2","value":"http://web-2","key":"n_0000000001","token":2,"acknowledged":false,"state":"waiting"},` +
			`{"id":"web-3","value":"http://web-3","key":"n_0000000002","token":3,"acknowledged":false,"state":"waiting"}]` + "\n"},
		{"fence reports", 125, ""},
		{"fence reports --at-least 9223372036854775807", 125, ""},
		{"resign nobody", 1, ""},
		{"leader", 125, ""},
		{"leader a b", 125, ""},
		{"leader /a", 125, ""},
		{"leader reports -o yaml", 125, ""},
		{"version now", 125, ""},
		{"resign nobody -o json", 1, "null\n"},
		{"fence reports -o json --at-least 2", 0, `{"election":"reports","above":2}` + "\n"},
		{"history nobody", 0, ""},
		{"history nobody -o json", 0, "[]\n"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			checkOutput(t, append([]string{"--url", url}, strings.Fields(tt.args)...), tt.code, tt.want)
		})
	}
}

func TestLineTable(t *testing.T) {
	url, leader := lineOf(t, "web-1", "a-rather-long-id")
	if err := leader.Acknowledge(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, stdout, _ := here("--url", url, "line", "reports")
	const want = `#  ID                KEY           TOKEN  STATE
1  web-1             n_0000000000  1      acknowledged
2  a-rather-long-id  n_0000000001  2      waiting
`
	if stdout != want {
		t.Errorf("output\n%s\nwant\n%s", stdout, want)
	}
}

// What others have chosen does nothing to a terminal.
func TestControlCharacters(t *testing.T) {
	// The last two change the order of letters, and show nothing.
	const evil, shown = "web\x1b[2J\x07\t\x7f\u009b1\u202e\U000e0041", `web\u001b[2J\u0007\u0009\u007f\u009b1\u202e\udb40\udc41`
	url, _ := lineOf(t, evil, evil)
	for _, args := range []string{"leader reports", "line reports", "leader reports -o json", "line reports -o json", "resign reports --wait 10ms"} {
		_, stdout, stderr := here(append([]string{"--url", url}, strings.Fields(args)...)...)
		said := stdout + stderr
		if strings.ContainsFunc(said, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf) && r != '\n' }) {
			t.Errorf("%s: %q has control characters", args, said)
		}
		if escaped := strings.NewReplacer(`\t`, `\u0009`).Replace(said); !strings.Contains(escaped, shown) && !strings.HasPrefix(args, "resign") {
			t.Errorf("%s: %q does not name %s", args, said, shown)
		}
	}
	var l member
	if _, stdout, _ := here("--url", url, "leader", "reports", "-o", "json"); json.Unmarshal([]byte(stdout), &l) != nil || l.ID != evil {
		t.Errorf("the id is %q in JSON, want %q", l.ID, evil)
	}
	it := elect.Candidate{Key: "k", ID: evil}
	for _, s := range []elect.State{{Leader: elect.Leader{Candidate: it}}, {Leader: elect.Leader{Candidate: it, Acknowledged: true}}, {Gate: it}, {Gate: it, Paused: true}} {
		c := changeTo(s)
		if !strings.Contains(c.String(), shown) {
			t.Errorf("%q does not name %s", c, shown)
		}
	}
}

// Where nobody has named a coordinator, it is said which one is meant, by what may be
// mistaken for another's answer.
func TestTheDefaultIsNamed(t *testing.T) {
	for _, tt := range []struct {
		args []string
		code int
	}{
		{[]string{"leader"}, 1}, {[]string{"line"}, 0}, {[]string{"history"}, 0}, {[]string{"resign"}, 1}, {[]string{"get"}, 1}, {[]string{"delete"}, 1},
		{[]string{"queue", "list"}, 0}, {[]string{"group", "list"}, 0},
	} {
		name := coordtest.Name(t)
		code, _, stderr := here(append(tt.args, name)...)
		if code != tt.code || !strings.Contains(stderr, `"`+name+`" for this user of this machine alone (local:`+local.DefaultDir()+`)`) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q: exit code %d, want %d; standard error %q", tt.args, code, tt.code, stderr)
		}
		if _, _, stderr = here(append(tt.args, name, "--url", localURL(t))...); strings.Contains(stderr, "this machine") {
			t.Errorf("%q: standard error %q, where a coordinator is named", tt.args, stderr)
		}
	}
	w := start(t, "watch", coordtest.Name(t))
	w.next()
	w.signal(syscall.SIGINT)
	w.exits(130)
	w.rest()
	if !strings.Contains(w.stderr.String(), "is meant for this user of this machine alone (local:"+local.DefaultDir()+")") {
		t.Errorf("watch says %q", w.stderr)
	}
}

// Looking makes nothing, neither on this machine nor, with what it makes there, in the way
// of others, and gives no election a home on one of several clusters.
func TestLookingMakesNothing(t *testing.T) {
	top := t.TempDir()
	east, west := "local:"+filepath.Join(top, "east", "app"), "local:"+filepath.Join(top, "west", "app")
	several := "spread:?to=east=" + east + "&to=west=" + west
	for _, url := range []string{east, several} {
		for _, args := range []string{
			"leader reports", "line reports", "resign reports", "leader reports -o json", "history reports", "get reports", "delete reports",
			"queue list reports", "group list reports", "resume reports", "spread where reports", "spread abort reports", "spread finish reports",
		} {
			here(append([]string{"--url", url}, strings.Fields(args)...)...)
		}
		w := start(t, "--url", url, "watch", "reports")
		w.next()
		if made, err := os.ReadDir(top); err != nil || len(made) != 0 {
			t.Errorf("looking by %s has made %v, %v", url, made, err)
		}
		if url == several { // "reports" falls to west, and is in use on east
			if code, _, stderr := here("--url", url, "spread", "put", "reports", "east"); code != 0 {
				t.Errorf("it cannot be put where it is in use: exit code %d: %s", code, stderr)
			}
		}
		r := start(t, "--url", url, "run", "--id", "web-1", "reports", "--", "sleep", "1000")
		if line, _ := w.next(); !strings.Contains(line, "web-1 leads") {
			t.Errorf("watch prints %q", line)
		}
		for _, p := range []*process{w, r} {
			p.signal(syscall.SIGTERM)
			waitCode(t, p.cmd)
		}
		os.RemoveAll(filepath.Join(top, "east"))
	}
}

func TestStateOf(t *testing.T) {
	for _, tt := range []struct {
		first bool
		p     place
		want  string
	}{
		{true, place{}, "leader"},
		{true, place{member: member{Acknowledged: true}}, "acknowledged"},
		{false, place{}, "waiting"},
		{true, place{member: member{Pinned: true}}, "pinned"},
		{true, place{member: member{Pinned: true, Paused: true}}, "paused"},
		{false, place{member: member{Pinned: true}}, "pinned"},
		{false, place{member: member{NotReady: "no disk"}}, "not ready"},
	} {
		if got := tt.p.state(tt.first, false); got != tt.want {
			t.Errorf("the state of %+v, first %t, is %q, want %q", tt.p, tt.first, got, tt.want)
		}
	}
}

func TestWatch(t *testing.T) {
	url := localURL(t)
	w := start(t, "--url", url, "watch", "-o", "json", "reports")
	text := start(t, "--url", url, "watch", "reports")
	expect := func(json, plain string) {
		t.Helper()
		w.line(json)
		got, _ := text.next()
		if _, after, _ := strings.Cut(got, "  "); after != plain {
			t.Errorf("text %q, want %q after the time", got, plain)
		}
	}
	expect(`{"event":"vacant","leader":null}`, "nobody leads")
	p := start(t, "--url", url, "run", "--id", "web-1", "--value", "x", "reports", "--", "sleep", "1000")
	token := p.event("elected").Token
	line, _ := w.next()
	want := fmt.Sprintf(`{"event":"elected","leader":{"id":"web-1","value":"x","key":"n_%d","token":%[1]d,"acknowledged":false}}`, token)
	if line != want {
		t.Errorf("line %s, want %s", line, want)
	}
	if got, _ := text.next(); !strings.HasSuffix(got, fmt.Sprintf("  web-1 leads, token %d", token)) {
		t.Errorf("text %q", got)
	}
	p.signal(15)
	p.exits(143)
	expect(`{"event":"vacant","leader":null}`, "nobody leads")
	if code, _, stderr := here("--url", url, "pause", "reports", "--by", "ops", "--reason", "a new disk"); code != 0 {
		t.Fatal(stderr)
	}
	line, _ = w.next()
	var paused change
	if err := json.Unmarshal([]byte(line), &paused); err != nil {
		t.Fatal(err)
	}
	const why = "the election is paused by ops: a new disk"
	if g := paused.Gate; paused.Event != "paused" || paused.Leader != nil || paused.Why != why || g == nil || g.ID != "ops" || g.Value != "a new disk" || !g.Paused {
		t.Errorf("line %s", line)
	}
	if got, _ := text.next(); !strings.HasSuffix(got, "  nobody leads: "+why) {
		t.Errorf("text %q", got)
	}
	w.signal(15)
	w.exits(143)
	text.signal(2)
	text.exits(130)
}

func TestFence(t *testing.T) {
	url, leader := lineOf(t, "web-1")
	checkOutput(t, []string{"--url", url, "fence", "reports", "--at-least", "5000"}, 0,
		"every later token of \"reports\" is larger than 5000\n")
	code, stdout, _ := here("--url", url, "leader", "reports", "-o", "json")
	if want := fmt.Sprintf(`"token":%d,`, leader.Token()+5000); code != 0 || !strings.Contains(stdout, want) {
		t.Errorf("after the fence was raised the leader is %s; want %s in it", stdout, want)
	}
}

// A leader whose token grows is not told of again, as if it were another.
func TestWatchWhileTheFenceIsRaised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, c := inMemory(t)
		b := c.Client("web")
		defer b.Close()
		term, err := elect.New(b, "reports", &elect.Options{ID: "web-1"}).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		enough, ended := errors.New("enough"), make(chan error)
		go func() {
			ended <- watch(&connect.Flags{URL: url, Timeout: 5 * time.Second}, "reports", func(c change) error {
				if told = append(told, c.Event); c.Event == "vacant" {
					return enough
				}
				return nil
			})
		}()
		op := operate.New(b, "reports", "")
		for _, do := range []func() error{
			func() error { return op.RaiseFence(t.Context(), 5000) },
			func() error { return term.Acknowledge(t.Context()) },
			func() error { return op.RaiseFence(t.Context(), 6000) },
			func() error { return term.Resign(t.Context()) },
		} {
			time.Sleep(time.Second)
			if err := do(); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-ended; !errors.Is(err, enough) {
			t.Fatal(err)
		}
		if want := []string{"elected", "acknowledged", "vacant"}; !slices.Equal(told, want) {
			t.Errorf("told is %q, want %q", told, want)
		}
	})
}

// ls says since when a leader leads also after its token has grown: the history has the token with which the term began.
func TestSinceWhenTheFenceIsRaised(t *testing.T) {
	url, c := inMemory(t)
	b := c.Client("web")
	defer b.Close()
	term, err := elect.New(b, "reports", &elect.Options{ID: "web-1", History: 5}).Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer term.Resign(t.Context())
	since := func() string {
		_, stdout, _ := here("--url", url, "ls", "-o", "json")
		_, after, _ := strings.Cut(stdout, `"since":`)
		since, _, _ := strings.Cut(after, ",")
		return since
	}
	was := since()
	// The beginning of a term is written down soon after it.
	for deadline := time.Now().Add(patience); was == ""; was = since() {
		if time.Now().After(deadline) {
			t.Fatal("it is not known since when it leads")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if code, _, stderr := here("--url", url, "fence", "reports", "--at-least", "5000"); code != 0 {
		t.Fatal(stderr)
	}
	if now := since(); now != was {
		t.Errorf("it leads since %q, and did since %q", now, was)
	}
}

// standing returns the URL of a coordinator on which a member of another program stands in line for reports, with its session.
func standing(t *testing.T, id string) (url string, s backend.Session, m backend.Member) {
	t.Helper()
	url, c := inMemory(t)
	b := c.Client("other")
	t.Cleanup(func() { b.Close() })
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	j, err := s.Join(t.Context(), "reports", id, "")
	if err != nil {
		t.Fatal(err)
	}
	return url, s, j.Member
}

// A leader that does not know of requests to resign, as that of another program,
// stays; the command must say so in time, which is virtual here.
func TestResignOfOneThatDoesNotHear(t *testing.T) { synctest.Test(t, testResignOfOneThatDoesNotHear) }

func testResignOfOneThatDoesNotHear(t *testing.T) {
	url, s, m := standing(t, "other")
	code, _, stderr := here("--url", url, "resign", "reports", "--wait", "5s")
	if code != ui.ExitTimeout || !strings.Contains(stderr, "other was asked to resign 5s ago and was not seen to resign") {
		t.Errorf("exit code %d, standard error %q", code, stderr)
	}
	if err := s.Pin(t.Context(), m, header.Header{Resign: 1 << 40}.Stored(), versionOf(t, s)); err != nil {
		t.Fatal(err)
	}
	code, _, stderr = here("--url", url, "resign", "reports", "--wait", "5s")
	if code != ui.ExitNobody || !strings.Contains(stderr, "for ever") {
		t.Errorf("pinned: exit code %d, standard error %q", code, stderr)
	}
}

// Several hold a shared lock at once. None of them waits, and whoever wants it alone waits for all of them.
func TestLineOfWhoShare(t *testing.T) {
	url, c := inMemory(t)
	b := c.Client("others")
	defer b.Close()
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for id, join := range []func(context.Context, string, string, string) (backend.Joined, error){s.JoinShared, s.JoinShared, s.Join, s.JoinShared} {
		if _, err := join(t.Context(), "reports", fmt.Sprint(id), ""); err != nil {
			t.Fatal(err)
		}
	}
	code, stdout, stderr := here("--url", url, "line", "reports", "-o", "json")
	var places []place
	if err := json.Unmarshal([]byte(stdout), &places); err != nil || code != 0 {
		t.Fatalf("exit code %d, %v, %s%s", code, err, stdout, stderr)
	}
	var got []string
	for _, p := range places {
		got = append(got, p.State)
	}
	if want := []string{"present", "present", "waiting", "waiting"}; !slices.Equal(got, want) {
		t.Errorf("those in line are %q, want %q", got, want)
	}
}

// A leader whose token grows, because the fence is raised, has not resigned.
func TestResignWhileTheFenceIsRaised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, _, _ := standing(t, "other")
		told := make(chan int)
		go func() {
			code, stdout, stderr := here("--url", url, "resign", "reports", "--wait", "5s")
			t.Log(stdout, stderr)
			told <- code
		}()
		time.Sleep(time.Second)
		if code, _, stderr := here("--url", url, "fence", "reports", "--at-least", "5000"); code != 0 {
			t.Errorf("fence: exit code %d, %s", code, stderr)
		}
		if code := <-told; code != ui.ExitTimeout {
			t.Errorf("resign: exit code %d, want %d", code, ui.ExitTimeout)
		}
	})
}

// A gate does not lead: it is not the next one.
func TestResignBeforeAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, s, m := standing(t, "other")
		if code, _, stderr := here("--url", url, "pause", "reports", "--wait", "1s"); code != ui.ExitTimeout {
			t.Fatalf("pause: exit code %d, %s", code, stderr)
		}
		told := make(chan string)
		go func() {
			_, stdout, _ := here("--url", url, "resign", "reports", "-o", "json")
			told <- stdout
		}()
		time.Sleep(time.Second)
		if err := s.Leave(t.Context(), m); err != nil {
			t.Error(err)
		}
		if stdout := <-told; !strings.HasSuffix(stdout, `,"next":null}`+"\n") {
			t.Errorf("resign prints %s", stdout)
		}
	})
}

func versionOf(t *testing.T, s backend.Session) backend.Version {
	t.Helper()
	r, err := s.Get(t.Context(), "reports")
	if err != nil {
		t.Fatal(err)
	}
	return r.Version
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	// Nobody answers there: the address is for documentation (RFC 5737).
	code, _, stderr := here("--url", "zookeeper://192.0.2.1:2181/", "--timeout", "50ms", "leader", "reports")
	if code != ui.ExitFailed || !strings.Contains(stderr, "192.0.2.1") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit code %d, standard error %q", code, stderr)
	}
}

// A URL may say that a coordinator is waited for as long as that takes; --timeout bounds it all the same.
func TestTimeoutOfMigrate(t *testing.T) {
	t.Parallel()
	const connect = time.Minute
	begin := time.Now()
	code, _, stderr := here("migrate", "status", "reports", "--from", fmt.Sprintf("zookeeper://192.0.2.1:2181/?connect=%v", connect), "--to", "memory:", "--timeout", "50ms")
	if code != ui.ExitFailed || !strings.Contains(stderr, "192.0.2.1") || time.Since(begin) > connect/2 {
		t.Errorf("after %v: exit code %d, standard error %q", time.Since(begin), code, stderr)
	}
}

// What is printed for an administrator is for the coordinator that candidates are given; if that is another one, for the default.
func TestSchemaOfTheEnvironment(t *testing.T) {
	for url, want := range map[string]string{"postgres://h1/app?schema=jobs": "jobs", "etcd://h1": "succession"} {
		t.Setenv("SUCCESSION_URL", url)
		schema, err := postgres.Schema(want)
		if err != nil {
			t.Fatal(err)
		}
		checkOutput(t, []string{"postgres", "schema"}, 0, schema)
	}
}

func TestURLFromTheEnvironment(t *testing.T) {
	url, _ := lineOf(t, "web-1")
	t.Setenv("SUCCESSION_URL", url)
	checkOutput(t, []string{"leader", "reports"}, 0, "web-1\n")
	_, stdout, _ := here("leader", "--help")
	if strings.Contains(stdout, url) {
		t.Errorf("the help shows what $SUCCESSION_URL is here:\n%s", stdout)
	}
}

func TestVersion(t *testing.T) {
	code, stdout, _ := here("version")
	if code != 0 || !strings.HasPrefix(stdout, "succession ") || !strings.Contains(stdout, "local, ") || !strings.HasSuffix(stdout, "\nformats: header 2\n") {
		t.Errorf("exit code %d, output %q", code, stdout)
	}
	if code, flag, _ := here("--version"); code != 0 || flag != stdout {
		t.Errorf("--version: exit code %d, output %q, want %q", code, flag, stdout)
	}
	code, stdout, _ = here("version", "-o", "json")
	var b build
	if err := json.Unmarshal([]byte(stdout), &b); err != nil || code != 0 || b.Version == "" || b.Go == "" || b.Header != 2 || !slices.Contains(b.Coordinators, "etcd") {
		t.Errorf("-o json: exit code %d, output %q (%v)", code, stdout, err)
	}
}

// Every exit code that run documents is one that it uses, and the other way round.
func TestHelpNamesEveryExitCode(t *testing.T) {
	_, stdout, _ := here("run", "--help")
	for _, code := range []int{ui.ExitLost, ui.ExitTimeout, ui.ExitFailed, ui.ExitNotExecutable, ui.ExitNotFound} {
		if !strings.Contains(stdout, fmt.Sprintf("\n  %-8d  ", code)) {
			t.Errorf("the help does not name exit code %d", code)
		}
	}
}

func TestEveryCommandHasHelpWithAnExample(t *testing.T) {
	for _, cmd := range commands(newRoot()) {
		if cmd.Name() != "version" && (cmd.Long == "" || cmd.Example == "") {
			t.Errorf("%s has no long help, or no example", cmd.CommandPath())
		}
	}
}

// commands returns what is below cmd and shown to people.
func commands(cmd *cobra.Command) (all []*cobra.Command) {
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			all = append(append(all, sub), commands(sub)...)
		}
	}
	return all
}

func TestGuardByHand(t *testing.T) {
	if code, _, stderr := result(t, "guard", "0", "true", "true"); code != ui.ExitFailed || !strings.Contains(stderr, "succession run") {
		t.Errorf("exit code %d, standard error %q", code, stderr)
	}
}

// A member that stands for ever leads nothing. It may be a seal, or have come back by a restore.
func TestPinnedIsNoLeader(t *testing.T) {
	url, s, m := standing(t, "web-1")
	if err := s.Pin(t.Context(), m, backend.Header{}, 0); err != nil {
		t.Fatal(err)
	}
	checkOutput(t, []string{"--url", url, "line", "reports", "-o", "json"}, 0,
		fmt.Sprintf(`[{"id":"web-1","key":%q,"token":%d,"acknowledged":false,"pinned":true,"state":"pinned"}]`+"\n", m.Key, m.Position))
	for args, want := range map[string]string{"": "", " -o json": "null\n"} {
		code, stdout, stderr := here(append([]string{"--url", url, "leader", "reports"}, strings.Fields(args)...)...)
		if code != 1 || stdout != want || !strings.Contains(stderr, "web-1 stands first for ever") {
			t.Errorf("leader%s: exit code %d, standard output %q, standard error %q", args, code, stdout, stderr)
		}
	}
}

// Who is first in an election that has moved, as when an operator has removed the seal, does not lead.
func TestFirstOfAMovedElectionIsNoLeader(t *testing.T) {
	url, s, _ := standing(t, "web-1")
	if _, err := s.Put(t.Context(), "reports", backend.Header{Sealed: "etcd://h1:2379"}.Encode(), nil); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := here("--url", url, "line", "reports"); code != 0 || !strings.HasSuffix(stdout, "  waiting\n") {
		t.Errorf("line: exit code %d, standard output %q, standard error %q", code, stdout, stderr)
	}
	if code, stdout, stderr := here("--url", url, "leader", "reports"); code != 1 || stdout != "" || !strings.Contains(stderr, "etcd://h1:2379") {
		t.Errorf("leader: exit code %d, standard output %q, standard error %q", code, stdout, stderr)
	}
}
