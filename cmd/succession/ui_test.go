//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// The page is there until the command is told to end, and with a token only for those who have it.
func TestUI(t *testing.T) {
	t.Parallel()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	get := func(url, token string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	url := localURL(t)
	p := start(t, "--url", url, "ui", "--listen", "127.0.0.1:0", "--token-file", token, "--allow", "resign,pause", "reports")
	at := <-p.out
	if code, _ := get(at, "wrong"); code != 401 {
		t.Errorf("without the token the answer of %s is %d", at, code)
	}
	if code, body := get(at, "0123456789abcdef"); code != 200 || !strings.Contains(body, url) || !strings.Contains(body, `data-allow="resign pause"`) {
		t.Errorf("the answer of %s is %d, %s", at, code, body)
	}
	p.signal(syscall.SIGTERM)
	p.exits(143)
}

// pausesOnPage checks that what is allowed on the page is done to the election.
func pausesOnPage(t *testing.T, url string) {
	name := coordtest.Name(t)
	p := start(t, "--url", url, "ui", name, "--listen", "127.0.0.1:0", "--allow", "pause")
	at := strings.TrimSuffix(<-p.out, "/")
	post := func(path, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Origin": {at}, "Content-Type": {"application/json"}, "Succession-Page": {"1"}}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	const bound = 5 * time.Second // of an act
	watch := calm.Start(t)
	if code, text := post("/pause", fmt.Sprintf(`{"name":%q,"reason":"moved"}`, name)); code != 204 {
		if !watch.NotJudged(bound, "the answer is %d, %s", code, text) {
			t.Errorf("the answer is %d, %s", code, text)
		}
		return
	}
	code, line, stderr := here("--url", url, "--timeout", "1m", "line", name, "-o", "json")
	var places []place
	if err := json.Unmarshal([]byte(line), &places); code != 0 || err != nil {
		t.Fatalf("exit code %d, %v, %s", code, err, stderr)
	}
	if len(places) != 1 || !places[0].Paused || places[0].ID != "the page of "+ui.WhoAmI() || places[0].Value != "moved" {
		t.Fatalf("the line is %s", line)
	}
	if code, text := post("/resign", fmt.Sprintf(`{"name":%q,"token":"1"}`, name)); code != 403 {
		t.Errorf("asked for what is not allowed, the answer is %d, %s", code, text)
	}
	if code, text := post("/resume", fmt.Sprintf(`{"name":%q,"token":"%d"}`, name, places[0].Token)); code != 204 {
		if !watch.NotJudged(bound, "the answer is %d, %s", code, text) {
			t.Errorf("the answer is %d, %s", code, text)
		}
		return
	}
	checkOutput(t, []string{"--url", url, "line", name}, 0, "")
}

// With several coordinators the command serves although one is not there. The overview says so within two seconds of an outage, and of
// its end, and the page of another coordinator goes on meanwhile.
func TestUIOfSeveral(t *testing.T) {
	t.Parallel()
	server := coordtest.NewEtcd(t, nil)
	server.Kill()
	orders, payments := localURL(t), "etcd://"+server.Addrs()[0]+"/several"
	p := start(t, "ui", "--listen", "127.0.0.1:0", "--coordinator", "orders="+orders, "--coordinator", "payments="+payments, "orders:reports")
	at := <-p.out
	overview, list := events(t, at+"events", "coordinators"), events(t, at+"orders/events", "list")
	type report struct {
		Name, URL          string
		Ready              bool
		Lost               int64
		Elections, Trouble int
	}
	sees := func(ok func(orders, payments report) bool) {
		t.Helper()
		for {
			text := overview()
			var all []report
			if err := json.Unmarshal([]byte(text), &all); err != nil || len(all) != 2 || all[0].URL != orders || all[1].URL != payments {
				t.Fatalf("the overview is told %s (%v)", text, err)
			}
			if ok(all[0], all[1]) {
				return
			}
		}
	}
	sees(func(orders, payments report) bool {
		return orders.Ready && orders.Lost == 0 && orders.Elections == 1 && orders.Trouble == 1 && payments.Lost != 0
	})
	in := func(what string, do func() error, lost bool) {
		t.Helper()
		watch := calm.Start(t)
		if err := do(); err != nil { // to start a server takes a while
			t.Fatal(err)
		}
		watch.From(time.Now())
		sees(func(_, payments report) bool {
			return lost && payments.Lost != 0 || !lost && payments.Lost == 0 && payments.Ready
		})
		watch.Within(2*time.Second, "that %s is seen", what)
	}
	restart := func() error { return server.Servers()[0].Restart(t.Context()) }
	in("the start of the server", restart, false)
	in("that it stands still", server.Pause, true)
	start(t, "--url", orders, "lock", "--id", "web-1", "mails", "--", "sleep", "1000").event("started")
	for !strings.Contains(list(), `"mails"`) {
	}
	in("that it goes on", server.Resume, false)
	in("that it was killed", func() error { server.Kill(); return nil }, true)
	in("that it was started again", restart, false)
	p.signal(syscall.SIGTERM)
	p.exits(143)
}

// Each cluster of a spread: URL has a page, and the elections that live there are on it. So have the coordinators that the environment
// names.
func TestUIOfClusters(t *testing.T) {
	t.Parallel()
	east, west := localURL(t), localURL(t)
	url := "spread:?to=east=" + east + "&to=west=" + west
	for i := range 4 {
		start(t, "--url", url, "lock", fmt.Sprintf("job-%d", i), "--", "sleep", "1000").event("started")
	}
	variable := command("ui", "--listen", "127.0.0.1:0")
	variable.Env = append(variable.Environ(), "SUCCESSION_UI_COORDINATORS=east="+east+" west="+west)
	for _, p := range []*process{start(t, "--url", url, "ui", "--listen", "127.0.0.1:0"), startCommand(t, variable)} {
		at := <-p.out
		seen := make(map[string]string) // the cluster, by the name of an election
		for _, cluster := range []string{"east", "west"} {
			told := events(t, at+cluster+"/events", "list")
			for ready := false; !ready; {
				var l struct {
					Ready bool
					Rows  []struct{ Name string }
				}
				if err := json.Unmarshal([]byte(told()), &l); err != nil {
					t.Fatal(err)
				}
				for _, r := range l.Rows {
					seen[r.Name] = cluster
				}
				ready = l.Ready
			}
		}
		if len(seen) != 4 {
			t.Errorf("on the pages are the elections %v, want 4", seen)
		}
	}
}

// events returns what returns the next of what the stream at the URL tells in events of that name.
func events(t *testing.T, url, name string) (next func() string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 200 {
		t.Fatalf("%s is answered with %s", url, resp.Status)
	}
	told, ended := make(chan string, 10000), make(chan struct{})
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(resp.Body)
		for is := ""; lines.Scan(); {
			if e, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				is = e
			} else if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && is == name {
				told <- data
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		resp.Body.Close()
		<-ended
	})
	return func() string {
		t.Helper()
		select {
		case data := <-told:
			return data
		case <-time.After(patience):
			t.Fatalf("%s tells no %s", url, name)
			return ""
		}
	}
}

// What cannot be served safely, or at all, is refused, and the command says what to do.
func TestUIRefuses(t *testing.T) {
	short := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(short, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	long := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(long, []byte("0123456789abcdef\n0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--token-file", long}, "has a space, a newline"},
		{[]string{"--token-file", token, "--user-header", "authorization", "--listen", "nowhere"}, "says something else than who asks"},
		{[]string{"--token-file", token, "--user-header", "Succession-page", "--listen", "nowhere"}, "says something else than who asks"},
		{[]string{"--base-path", "/healthz", "--listen", "nowhere"}, "is no path of this page"},
		{[]string{"--listen", "0.0.0.0:0"}, "needs a token: give one with --token-file or $SUCCESSION_UI_TOKEN"},
		{[]string{"--listen", "nowhere"}, "--listen: "},
		{[]string{"--token-file", short}, "has 5 bytes; give it 16 or more"},
		{[]string{"--token-file", short + "-not"}, "--token-file: "},
		{[]string{"--allow", "resign,seal"}, `--allow: "seal" is nothing that the page can do; it can do: [resign pause]`},
		{[]string{"/reports"}, "it begins with a slash"},
		{[]string{"--coordinator", "a=local:/a"}, "give all with --coordinator"},
	} {
		code, _, stderr := here(append([]string{"--url", localURL(t), "ui"}, c.args...)...)
		if code != 125 || !strings.Contains(stderr, c.says) {
			t.Errorf("ui %q: exit code %d, %s; want 125 and %q", c.args, code, stderr, c.says)
		}
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--coordinator", "local:/a", "--coordinator", "local:/b"}, "two coordinators are called local"},
		{[]string{"--coordinator", "a=redis://h1"}, `a: invalid URL: unknown scheme "redis"`},
		{[]string{"--coordinator", "a=" + localURL(t), "reports"}, "as in a:reports"},
		{[]string{"--coordinator", "a=" + localURL(t), "--listen", "0.0.0.0:0"}, "needs a token"},
	} {
		code, _, stderr := here(append([]string{"ui", "--listen", "127.0.0.1:0"}, c.args...)...)
		if code != 125 || !strings.Contains(stderr, c.says) {
			t.Errorf("ui %q: exit code %d, %s; want 125 and %q", c.args, code, stderr, c.says)
		}
	}
}

// A token in the environment may end with a newline, as one does that was made into a Secret with echo.
func TestUITokenOfEnvironment(t *testing.T) {
	t.Parallel()
	cmd := command("--url", localURL(t), "ui", "--listen", "127.0.0.1:0")
	cmd.Env = append(cmd.Environ(), "SUCCESSION_UI_TOKEN=0123456789abcdef\n")
	at := <-startCommand(t, cmd).out
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer 0123456789abcdef")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("the answer is %d", resp.StatusCode)
	}
}

// More connections than the page has room for are told so, and silent ones do not last.
func TestUIConnections(t *testing.T) {
	t.Parallel()
	p := start(t, "--url", localURL(t), "ui", "--listen", "127.0.0.1:0")
	at := strings.TrimSuffix(<-p.out, "/")
	fewConnections(t, strings.TrimPrefix(at, "http://"), "/", "close a page", "/healthz")
}

// fewConnections opens more connections than the server at the address has room for, and fails if they can take its memory, or have its
// liveness probe fail.
func fewConnections(t *testing.T, at, path, says, probe string) {
	t.Helper()
	var all []net.Conn
	for range 202 {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		all = append(all, c)
	}
	ask := func(c net.Conn, path, header string) string {
		t.Helper()
		if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: "+header+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(c)
		if err != nil {
			t.Fatal(err)
		}
		return string(answer)
	}
	if answer := ask(all[200], path, ""); !strings.HasPrefix(answer, "HTTP/1.1 503 ") || !strings.Contains(answer, says) {
		t.Errorf("one too many is answered with %.200s", answer)
	}
	if answer := ask(all[201], probe, ""); !strings.HasPrefix(answer, "HTTP/1.1 200 ") {
		t.Errorf("one too many that asks for %s is answered with %.200s", probe, answer)
	}
	if answer := ask(all[0], path, ""); !strings.HasPrefix(answer, "HTTP/1.1 200 ") {
		t.Errorf("one that came before is answered with %.200s", answer)
	}
	if answer := ask(all[1], path, strings.Repeat("x", 24<<10)); !strings.HasPrefix(answer, "HTTP/1.1 431 ") {
		t.Errorf("one with long headers is answered with %.200s", answer)
	}
}
