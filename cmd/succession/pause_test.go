//go:build linux

package main

import (
	"strings"
	"testing"
)

func TestPause(t *testing.T) {
	url, _ := inMemory(t)
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"pause reports --wait 0s", 125, ""},
		{"resume reports", 1, ""},
		{"pause reports --by ops@host --reason moved", 0, "nobody leads \"reports\" until: succession resume reports\n"},
		{"pause reports --by other --reason again", 1, ""},
		{"leader reports", 1, ""},
		{"leader reports -o json", 1, "null\n"},
		{"resign reports", 125, ""},
		{"line reports", 0, "#  ID        KEY           TOKEN  STATE\n1  ops@host  n_0000000000  1      paused: moved\n"},
		{"line reports -o json", 0, `[{"id":"ops@host","value":"moved","key":"n_0000000000","token":1,"acknowledged":false,"pinned":true,"paused":true,"state":"paused"}]` + "\n"},
		{"resume reports", 0, "\"reports\" is open again; it was paused by ops@host: moved\n"},
		{"line reports", 0, ""},
	} {
		checkOutput(t, append([]string{"--url", url}, strings.Fields(tt.args)...), tt.code, tt.want)
	}
}

func TestResignNamesATerm(t *testing.T) {
	url, leader := lineOf(t, "web-1", "web-2")
	for _, tt := range []struct {
		args string
		code int
	}{
		{"resign reports --token 7", 1},
		{"resign reports --to web-1", 125}, // it leads already
		{"resign reports --to web-7", 125},
	} {
		checkOutput(t, append([]string{"--url", url}, strings.Fields(tt.args)...), tt.code, "")
	}
	if leader.Check() != nil {
		t.Errorf("the leader was asked to resign: %v", leader.Check())
	}
}
