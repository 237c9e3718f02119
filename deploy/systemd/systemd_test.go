//go:build linux

// Package systemd has units to copy; docs/deploying.md says how they are used.
package systemd

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/unit"

	"github.com/succession-dev/succession/backend"
	_ "github.com/succession-dev/succession/etcd"
)

// leaving is how long a candidate may take to leave the line; see elect.Options ResignTimeout.
const leaving = 5 * time.Second

func units(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.service")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no units (%v)", err)
	}
	return files
}

// systemd itself finds nothing wrong, and the units have few rights.
func TestVerify(t *testing.T) {
	for _, file := range units(t) {
		// It wants the program to be there.
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(t.TempDir(), file)
		program := regexp.MustCompile(`(?m)^ExecStart=\S+`)
		if err := os.WriteFile(copied, program.ReplaceAll(text, []byte("ExecStart=/bin/sh")), 0o644); err != nil {
			t.Fatal(err)
		}
		analyze(t, "verify", "--man=no", copied)
		analyze(t, "security", "--offline=yes", "--no-pager", "--threshold=20", copied) // 2.0 of 10
	}
}

// analyze runs systemd-analyze, which must succeed, and say nothing against the unit.
func analyze(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.Command("systemd-analyze", args...).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze %s: %v (it is in the package systemd of Debian)\n%s", strings.Join(args, " "), err, out)
	} else if args[0] == "verify" && len(out) > 0 {
		t.Errorf("systemd-analyze %s:\n%s", strings.Join(args, " "), out)
	}
}

// The settings that an election depends on.
func TestSettings(t *testing.T) {
	for _, file := range units(t) {
		t.Run(file, func(t *testing.T) {
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			options, err := unit.DeserializeOptions(f)
			if err != nil {
				t.Fatal(err)
			}
			set := make(map[string]string)
			for _, o := range options {
				if o.Section == "Service" {
					set[o.Name] = o.Value
				}
			}
			if set["KillMode"] != "mixed" || set["Restart"] != "on-failure" {
				t.Errorf("KillMode=%s, Restart=%s; want mixed and on-failure", set["KillMode"], set["Restart"])
			}
			grace := time.Duration(0)
			if g := regexp.MustCompile(`--grace (\S+)`).FindStringSubmatch(set["ExecStart"]); g != nil {
				if grace, err = time.ParseDuration(g[1]); err != nil {
					t.Fatal(err)
				}
			}
			if stop, err := time.ParseDuration(set["TimeoutStopSec"]); err != nil || stop <= grace+leaving {
				t.Errorf("TimeoutStopSec=%s (%v): it is killed before it has left the line, which takes %v", set["TimeoutStopSec"], err, grace+leaving)
			}
			url, ok := strings.CutPrefix(set["Environment"], "SUCCESSION_URL=")
			if !ok {
				t.Fatalf("Environment=%s: there is no SUCCESSION_URL", set["Environment"])
			}
			credential, _, _ := strings.Cut(set["LoadCredential"], ":")
			u, err := backend.ParseURL(strings.ReplaceAll(url, "%d", "/run/credentials/unit"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := backend.DefaultMux.Driver(u); err != nil {
				t.Error(err)
			}
			if got := u.Text("password-file", ""); got != "/run/credentials/unit/"+credential {
				t.Errorf("password-file=%s is not the credential %q", got, credential)
			}
		})
	}
}
