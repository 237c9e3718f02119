//go:build linux

// Package systemd has units to copy; docs/deploying.md says how they are used.
package systemd

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/unit"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend/coordinator"
	_ "github.com/succession-dev/succession/etcd"
	_ "github.com/succession-dev/succession/local"
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
		dropins, err := filepath.Glob(file + ".d/*.conf")
		if err != nil {
			t.Fatal(err)
		}
		analyze(t, "verify", "--man=no", copied)
		for _, dropin := range dropins {
			with := filepath.Join(t.TempDir(), file)
			if err := errors.Join(os.Link(copied, with), os.CopyFS(with+".d", os.DirFS(filepath.Dir(dropin)))); err != nil {
				t.Fatal(err)
			}
			analyze(t, "verify", "--man=no", with)
		}
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

// A folder that others may read is one in which they can lock files, so what makes a folder for local: makes it the
// unit's alone; systemd's default lets everybody in.
func TestStateDirectoryIsPrivate(t *testing.T) {
	files, err := filepath.Glob("*.service.d/*.conf")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range append(files, units(t)...) {
		set := settings(t, file)
		if set["StateDirectory"] == "" {
			continue
		}
		found++
		if set["StateDirectoryMode"] != "0700" {
			t.Errorf("%s: StateDirectoryMode=%s of StateDirectory=%s; want 0700", file, set["StateDirectoryMode"], set["StateDirectory"])
		}
		text, _ := strings.CutPrefix(set["Environment"], "SUCCESSION_URL=")
		u, err := coordinator.ParseURL(text)
		if err != nil {
			t.Fatal(err)
		}
		if u.Scheme != "local" || u.Path != "/var/lib/"+set["StateDirectory"] {
			t.Errorf("%s: SUCCESSION_URL=%s is not in StateDirectory=%s", file, text, set["StateDirectory"])
		}
	}
	if found == 0 {
		t.Error("no unit has a StateDirectory")
	}
}

// Each SUCCESSION_URL can be opened, on a machine that has the folders and credentials: its driver knows all that it says.
func TestURLs(t *testing.T) {
	files, err := filepath.Glob("*.service.d/*.conf")
	if err != nil {
		t.Fatal(err)
	}
	machine := t.TempDir()
	if err := os.WriteFile(filepath.Join(machine, "password"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, units(t)...) {
		url, ok := strings.CutPrefix(settings(t, file)["Environment"], "SUCCESSION_URL=")
		if !ok {
			t.Errorf("%s has no SUCCESSION_URL", file)
			continue
		}
		b, err := succession.Open(strings.NewReplacer("%d", machine, "/var/lib", machine).Replace(url))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

// settings returns what the sections Unit and Service of a file set; of what is set several times, all, with newlines between.
func settings(t *testing.T, file string) map[string]string {
	t.Helper()
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
		if o.Section == "Unit" || o.Section == "Service" {
			set[o.Name] = strings.TrimPrefix(set[o.Name]+"\n"+o.Value, "\n")
		}
	}
	return set
}

// The settings that an election depends on.
func TestSettings(t *testing.T) {
	for _, file := range units(t) {
		t.Run(file, func(t *testing.T) {
			set := settings(t, file)
			if set["Restart"] != "on-failure" {
				t.Errorf("Restart=%s; want on-failure", set["Restart"])
			}
			if set["StartLimitIntervalSec"] != "0" {
				t.Errorf("StartLimitIntervalSec=%s; want 0, so that systemd never gives up", set["StartLimitIntervalSec"])
			}
			// The command says when it is ready; without it nobody would.
			program, args, _ := strings.Cut(set["ExecStart"], " ")
			if command := program == "/usr/bin/succession"; command != (set["Type"] == "notify") {
				t.Errorf("Type=%s of %s", set["Type"], program)
			} else if command && set["SuccessExitStatus"] != "143" {
				t.Errorf("SuccessExitStatus=%s; want 143, by which the command says that TERM ended it", set["SuccessExitStatus"])
			}
			// What it runs may have been ended by a TERM that was for that alone.
			if strings.HasPrefix(args, "run ") && set["RestartForceExitStatus"] != "143" {
				t.Errorf("RestartForceExitStatus=%s; want 143", set["RestartForceExitStatus"])
			}
			if !strings.HasPrefix(args, "ui ") {
				leaves(t, set)
			}
			url, ok := strings.CutPrefix(set["Environment"], "SUCCESSION_URL=")
			if !ok {
				t.Fatalf("Environment=%s: there is no SUCCESSION_URL", set["Environment"])
			}
			u, err := coordinator.ParseURL(strings.ReplaceAll(url, "%d", credentials))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := coordinator.DefaultMux.Driver(u); err != nil {
				t.Error(err)
			}
			needs := []string{u.Text("password-file", "")}
			for _, m := range regexp.MustCompile(`--\S+-file (\S+)`).FindAllStringSubmatch(args, -1) {
				needs = append(needs, strings.ReplaceAll(m[1], "%d", credentials))
			}
			var has []string
			for _, c := range strings.Split(set["LoadCredential"], "\n") {
				name, _, _ := strings.Cut(c, ":")
				has = append(has, credentials+"/"+name)
			}
			if !slices.Equal(needs, has) {
				t.Errorf("the files %q are needed, and the credentials are %q", needs, has)
			}
			// Prometheus itself, and what is usually beside it, are on the same machines.
			for _, taken := range []string{"9090", "9091", "9093", "9100"} {
				if strings.Contains(args, taken) {
					t.Errorf("%s: another program usually listens at port %s", args, taken)
				}
			}
		})
	}
}

// credentials is the folder of a unit's credentials.
const credentials = "/run/credentials/unit"

// leaves checks that a candidate can leave the line before it is killed.
func leaves(t *testing.T, set map[string]string) {
	t.Helper()
	if set["KillMode"] != "mixed" {
		t.Errorf("KillMode=%s; want mixed", set["KillMode"])
	}
	var err error
	grace := time.Duration(0)
	if g := regexp.MustCompile(`--grace (\S+)`).FindStringSubmatch(set["ExecStart"]); g != nil {
		if grace, err = time.ParseDuration(g[1]); err != nil {
			t.Fatal(err)
		}
	}
	if stop, err := time.ParseDuration(set["TimeoutStopSec"]); err != nil || stop <= grace+leaving {
		t.Errorf("TimeoutStopSec=%s (%v): it is killed before it has left the line, which takes %v", set["TimeoutStopSec"], err, grace+leaving)
	}
}
