//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// The packages are built; the Debian one is installed below a folder, tried, and removed without a trace.
func TestPackages(t *testing.T) {
	files, err := packages(t.TempDir(), runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	deb, rpm := files[0], files[1]
	sums := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	sums.Dir = filepath.Dir(deb)
	if said := output(t, sums); !strings.Contains(said, filepath.Base(deb)+": OK") || !strings.Contains(said, filepath.Base(rpm)+": OK") {
		t.Errorf("the checksums are of %s; want both packages", said)
	}
	same(t, files)
	if head, err := os.ReadFile(rpm); err != nil || !bytes.HasPrefix(head, []byte{0xed, 0xab, 0xee, 0xdb}) {
		t.Errorf("%s is no RPM package (%v)", rpm, err)
	}

	root := t.TempDir()
	dpkg := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("dpkg", append([]string{"--root=" + root, "--force-not-root", "--log=/dev/null"}, args...)...)
		cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin") // dpkg looks for ldconfig
		return output(t, cmd)
	}
	for _, dir := range []string{"info", "updates"} {
		if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	before := tree(t, root)
	dpkg("-i", deb)
	t.Run("lintian", func(t *testing.T) { lintian(t, deb) })
	t.Run("version", func(t *testing.T) { version(t, root) })
	t.Run("man", func(t *testing.T) { man(t, root) })
	t.Run("completion", func(t *testing.T) { completion(t, root) })
	t.Run("folders", func(t *testing.T) { folders(t, root) })
	t.Run("documents", func(t *testing.T) { documents(t, root) })
	dpkg("-P", "succession")
	if after := tree(t, root); !slices.Equal(before, after) {
		t.Errorf("when the package is removed there are\n%s\nwhere before it was installed there were\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
	}
}

// same checks that the packages are the same bytes if they are built again: later, elsewhere, and with another umask.
func same(t *testing.T, files []string) {
	t.Helper()
	defer syscall.Umask(syscall.Umask(0o077))
	again, err := packages(t.TempDir(), runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range files {
		first, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		second, err := os.ReadFile(again[i])
		if err != nil {
			t.Fatal(err)
		}
		if a, b := sha256.Sum256(first), sha256.Sum256(second); a != b || filepath.Base(file) != filepath.Base(again[i]) {
			t.Errorf("%s has the sum %x; when it is built again, %s has %x", filepath.Base(file), a, filepath.Base(again[i]), b)
		}
	}
}

// folders checks that each folder of the package that a page or a unit names is there, so that the commands on the page can be
// pasted.
func folders(t *testing.T, root string) {
	named := regexp.MustCompile(`/(?:etc|usr/share/doc|usr/share/man)/succession[\w./-]*[\w/-]`)
	var texts []string
	for _, glob := range []string{"../../docs/*.md", "../systemd/*.service"} {
		files, err := filepath.Glob(glob)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", glob, err)
		}
		texts = append(texts, files...)
	}
	found := 0
	for _, file := range texts {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range named.FindAllString(string(text), -1) {
			found++
			info, err := os.Stat(filepath.Join(root, path))
			if errors.Is(err, fs.ErrNotExist) { // a file that somebody is to write
				info, err = os.Stat(filepath.Join(root, filepath.Dir(path)))
			}
			if err != nil || filepath.Ext(path) == "" && !info.IsDir() && !info.Mode().IsRegular() {
				t.Errorf("%s names %s, which is not there: %v", file, path, err)
			}
		}
	}
	if found < 5 {
		t.Errorf("only %d folders of the package are named", found)
	}
}

// documents checks that what belongs to the package says what it is: the changes, the terms, and all that is linked.
func documents(t *testing.T, root string) {
	doc := filepath.Join(root, "usr/share/doc/succession")
	for file, want := range map[string]string{
		"changelog.gz": "\n## 0.1.0\n", "changelog.Debian.gz": "succession (", "copyright": "License: Apache-2.0\n", "THIRD-PARTY": "\ngithub.com/go-zookeeper/zk v",
		"sbom.cdx.json": "pkg:golang/github.com/go-zookeeper/zk@v", "examples/succession-ui.service": "ExecStart=/usr/bin/succession ui", "examples/send-reports.service.d/local.conf": "StateDirectory=",
	} {
		text, err := os.ReadFile(filepath.Join(doc, file))
		if err == nil && filepath.Ext(file) == ".gz" {
			var z *gzip.Reader
			if z, err = gzip.NewReader(bytes.NewReader(text)); err == nil {
				text, err = io.ReadAll(z)
			}
		}
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s has no %q: %v, %.300s", file, want, err, text)
		}
	}
}

// Debian's own check finds nothing wrong with the package, but for what lintian-overrides has, with the reasons.
func lintian(t *testing.T, deb string) {
	if _, err := exec.LookPath("lintian"); err != nil {
		t.Skip("not checked: lintian is not here; on Debian: apt-get install --no-install-recommends lintian")
	}
	out, err := exec.Command("lintian", "--fail-on", "error,warning", "--allow-root", deb).CombinedOutput()
	if err != nil {
		t.Errorf("lintian: %v\n%s", err, out)
	}
}

// tree returns what is below root, except for dpkg's own files.
func tree(t *testing.T, root string) (paths []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if path == "var/lib/dpkg" {
			return fs.SkipDir
		}
		paths = append(paths, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// version checks that the command runs, and is what the package says.
func version(t *testing.T, root string) {
	var v struct{ Version string }
	answer := output(t, exec.Command(filepath.Join(root, "usr/bin/succession"), "version", "-o", "json"))
	if err := json.Unmarshal([]byte(answer), &v); err != nil {
		t.Fatal(err)
	}
	number, _, _ := strings.Cut(strings.TrimPrefix(v.Version, "v"), "-")
	packaged := output(t, exec.Command("dpkg-query", "--admindir="+filepath.Join(root, "var/lib/dpkg"), "-W", "-f", "${Version}", "succession"))
	if !strings.HasPrefix(packaged, number) {
		t.Errorf("the package has the version %s, and the command in it %s", packaged, v.Version)
	}
}

// man checks that man finds the pages and has nothing against them, and that they say what --help does.
func man(t *testing.T, root string) {
	pages, err := filepath.Glob(filepath.Join(root, "usr/share/man/man1/*.1.gz"))
	if err != nil || len(pages) < 20 {
		t.Fatalf("there are %d manual pages (%v)", len(pages), err)
	}
	read := func(page string) string {
		t.Helper()
		cmd := exec.Command("man", "--warnings", "-M", filepath.Join(root, "usr/share/man"), page)
		cmd.Env = append(os.Environ(), "MANWIDTH=200", "LC_ALL=C.UTF-8", "MAN_KEEP_FORMATTING=")
		var warnings strings.Builder
		cmd.Stderr = &warnings
		text, err := cmd.Output()
		if err != nil || warnings.Len() > 0 {
			t.Errorf("man %s: %v (it is in the package man-db of Debian)\n%s", page, err, &warnings)
		}
		return string(text)
	}
	for _, page := range pages {
		read(strings.TrimSuffix(filepath.Base(page), ".1.gz"))
	}
	page := read("succession-run")
	help := output(t, exec.Command(filepath.Join(root, "usr/bin/succession"), "run", "--help"))
	long, _, _ := strings.Cut(help, "Usage:")
	for line := range strings.Lines(long) {
		if !strings.Contains(page, strings.TrimSpace(line)) {
			t.Errorf("the manual page lacks the line %q", line)
		}
	}
	for _, want := range []string{"--grace", "succession(1)", "succession --url zookeeper://zk1:2181,zk2:2181/app run --id web-2 --restart reports -- ./work"} {
		if !strings.Contains(page, want) {
			t.Errorf("the manual page lacks %s", want)
		}
	}
}

// output runs cmd, which must succeed, and returns what it prints.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.Output()
	if err != nil {
		message := ""
		if e := (*exec.ExitError)(nil); errors.As(err, &e) {
			message = string(e.Stderr)
		}
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, message)
	}
	return string(out)
}
