//go:build unix

package run

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/succession-dev/succession/cmd/succession/internal/ui"
)

func TestReadyIsALineOfShell(t *testing.T) {
	for line, want := range map[string]string{
		"true":                            "",
		"exit 3":                          "--ready: exit status 3",
		"echo first; echo no disk; false": "no disk",
		"echo no disk >&2; exit 1":        "no disk",
		"no-such-program-at-all":          "not found",
	} {
		err := (&choice{ready: line}).ask(t.Context())
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	// A line that was cut off may have begun with the word for a secret.
	for line, want := range map[string]string{
		"seq 1000000; echo no disk; false":                  "no disk",
		"printf 'password='; seq -s x 1000000; false":       "--ready: exit status 1",
		"echo first; printf 'password='; seq -s x 9; false": "password=redacted",
	} {
		if err := (&choice{ready: line}).ask(t.Context()); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := (&choice{ready: "sleep 60 # hunter2"}).ask(ctx); err == nil || !strings.Contains(err.Error(), "in time") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("one that does not end: %v", err)
	}
}

// The reason that a process is not ready is published, and it must not be with a password.
func TestReadyPublishesNoPassword(t *testing.T) {
	for said, want := range map[string]string{
		"cannot connect to postgres://app:hunter2@db1/app: timeout": "cannot connect to postgres://redacted@db1/app: timeout",
		"redis://:hun@ter2@db1: refused":                            "redis://redacted@db1: refused",
		"host=db1 password=hunter2 dbname=app: refused":             "host=db1 password=redacted dbname=app: refused",
		`{"error":"refused","db_password": "hunter2 and more"}`:     `{"error":"refused","db_password": redacted}`,
		"GET /x?access_token=hunter2&a=b: 403":                      "GET /x?access_token=redacted&a=b: 403",
		"Authorization: Bearer hunter2":                             "Authorization: Bearer redacted",
		"AWS_SECRET_KEY='hunter 2' is wrong":                        "AWS_SECRET_KEY=redacted is wrong",
		"app:hunter2@tcp(db1:3306)/app: refused":                    "app:redacted@tcp(db1:3306)/app: refused",
		"ping: app:hun@ter2@db1: refused":                           "ping: app:redacted@db1: refused",
		"AccountName=app;AccountKey=hunter2;Endpoint=x":             "AccountName=app;AccountKey=redacted;Endpoint=x",
		"+ psql-check --password hunter2 db1":                       "+ psql-check --password redacted db1",
		"vault --token='hunter 2': denied":                          "vault --token=redacted: denied",
		`{"log":"{\"password\":\"hunter2\"}"}`:                      `{"log":"{\"password\":redacted}"}`,
		`{"password":"hun\"ter2 x","n":1}`:                          `{"password":redacted,"n":1}`,
		"GET /x?sig=hunter2&a=b: 403, pass=hunter2":                 "GET /x?sig=redacted&a=b: 403, pass=redacted",
		"Cookie: sid=hunter2; b=hunter2":                            "Cookie: redacted",
		"X-Auth-Token: Bearer hunter2":                              "X-Auth-Token: redacted redacted",
		"tests passed: 7; key: none; tail -p 7":                     "tests passed: 7; key: none; tail -p 7",
		"git@example.com: timeout":                                  "git@example.com: timeout",
		"the password is wrong":                                     "the password is wrong",
		"token 7 is behind, at 10:30":                               "token 7 is behind, at 10:30",
		"no space left on /var/lib/app":                             "no space left on /var/lib/app",
	} {
		if got := withoutSecrets(said); got != want {
			t.Errorf("%s is published as %s; want %s", said, got, want)
		}
	}
}

// Without a shell nobody stands in line to find out that there is none; and where that goes meanwhile, the exit code is none of the command.
func TestNoShell(t *testing.T) {
	defer func(was string) { shell = was }(shell)
	shell = "/no/such/shell"
	for _, o := range []runOptions{{choice: choice{ready: "true"}}, {onElected: "true"}, {onLost: "true"}} {
		if err := o.checkShell(); err == nil || !strings.Contains(err.Error(), shell) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if err := new(runOptions).checkShell(); err != nil {
		t.Errorf("where none is needed: %v", err)
	}
	h := &hook{name: onElected, err: startError(shell, &os.PathError{Op: "fork/exec", Path: shell, Err: syscall.ENOENT})}
	if e := (*ui.ExitError)(nil); errors.As(h.kept("web"), &e) {
		t.Errorf("a hook that was not started ends with %d", e.Code)
	}
}
