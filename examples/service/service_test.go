//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// Instances are processes of the test's own program.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-http") {
		main()
		return
	}
	os.Exit(m.Run())
}

// An instance that is told to stop ends well, and the next one leads at once.
func TestService(t *testing.T) {
	url := "local:" + t.TempDir()
	first := start(t, url, "web-1")
	first.logs(t, "a report is sent")
	second := start(t, url, "web-2")
	second.logs(t, "waiting")
	for _, want := range []struct {
		of     *instance
		path   string
		status int
		body   string
	}{
		{first, "/leader", 200, `"id":"web-1"`},
		{second, "/leader", 503, `"id":"web-2"`},
		{first, "/live", 200, ""},
		{second, "/live", 200, ""},
		{second, "/ready", 200, "{\"ready\":true}\n"},
		{first, "/metrics", 200, `succession_leader{election="reports"} 1` + "\n"},
		{second, "/metrics", 200, `succession_leader{election="reports"} 0` + "\n"},
	} {
		if status, body := want.of.get(t, want.path); status != want.status || !strings.Contains(body, want.body) {
			t.Errorf("%s of %s: %d %s; want %d and %s", want.path, want.of.id, status, body, want.status, want.body)
		}
	}
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(); err != nil {
		t.Errorf("after TERM: %v", err)
	}
	second.logs(t, "a report is sent")
	if status, body := second.get(t, "/leader"); status != 200 {
		t.Errorf("/leader of web-2, which leads: %d %s", status, body)
	}
}

type instance struct {
	*exec.Cmd
	id, address string
	log         *bufio.Scanner
}

// start starts an instance, and waits until it serves.
func start(t *testing.T, url, id string) *instance {
	t.Helper()
	i := &instance{Cmd: exec.Command(os.Args[0], "-url", url, "-id", id, "-http", "127.0.0.1:0"), id: id}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	i.Stderr, i.log = w, bufio.NewScanner(r)
	if err := i.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	t.Cleanup(func() {
		i.Process.Kill()
		i.Wait()
		r.Close()
	})
	i.address = i.logs(t, "serving")
	return i
}

// logs waits for the message, and returns its address, if it has one.
func (i *instance) logs(t *testing.T, message string) string {
	t.Helper()
	for i.log.Scan() {
		var line struct{ Msg, Address string }
		if json.Unmarshal(i.log.Bytes(), &line) == nil && line.Msg == message {
			return line.Address
		}
		t.Logf("%s: %s", i.id, i.log.Text())
	}
	t.Fatalf("%s has ended, and did not log %q", i.id, message)
	return ""
}

func (i *instance) get(t *testing.T, path string) (int, string) {
	t.Helper()
	resp, err := http.Get("http://" + i.address + path)
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
