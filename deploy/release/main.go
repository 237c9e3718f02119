// Release makes all that a version publishes, from a commit that has its tags: the modules as Go's proxies keep them, and from
// these, as a user's go install does, the command for each system, with its licences, a list of what it links (an SBOM), and
// checksums. The packages and the image are made beside it, by ./packages and ./container.
//
//	go run -C deploy ./release -o /tmp/release
//
// CONTRIBUTING.md has the steps of a release. Without the tags it says which there must be.
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"

	"github.com/succession-dev/succession/deploy/internal/build"
	"github.com/succession-dev/succession/deploy/internal/licences"
	"github.com/succession-dev/succession/deploy/internal/sbom"
)

const (
	library = "github.com/succession-dev/succession"
	command = "cmd/succession"
)

// modules are the folders of those that have versions. The others are for those who build this project.
var modules = []string{"", command, "postgres", "kubernetes", "metrics/prometheus", "metrics/otel", "adapters/gocron", "adapters/controllerruntime"}

func main() {
	out := flag.String("o", "", "the folder that it is written to, which is made; without it only says what is missing")
	platforms := flag.String("platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64", "what the command is built for")
	flag.Parse()
	if err := release(*out, strings.Split(*platforms, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// A maker makes one release.
type maker struct {
	root    string // of the repository
	out     string
	version string // with the v
	cache   string // of modules: none of this release gets into the user's
}

func release(out string, platforms []string) error {
	root, err := build.Root()
	if err != nil {
		return err
	}
	version, err := next(root)
	if err != nil {
		return err
	}
	if err := ready(root, version); err != nil {
		return err
	}
	if out == "" {
		return fmt.Errorf("%s is ready; give the folder to write to with -o", version)
	}
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	if err := os.Mkdir(out, 0o755); err != nil {
		return err
	}
	cache, err := os.MkdirTemp("", "succession-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(cache)
	m := &maker{root, out, version, cache}
	for _, folder := range modules {
		if err := m.publish(folder); err != nil {
			return fmt.Errorf("module %s: %w", cmp.Or(folder, "."), err)
		}
	}
	for _, p := range platforms {
		system, arch, _ := strings.Cut(p, "/")
		if err := m.command(system, arch); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return build.Sums(m.out)
}

// next returns the version that CHANGELOG.md has first.
func next(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	v := regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+)\b`).FindSubmatch(text)
	if v == nil {
		return "", errors.New("CHANGELOG.md has no version")
	}
	return "v" + string(v[1]), nil
}

// unreleased is what the pages say as long as there is no release.
var unreleased = map[string]string{"README.md": "before the first release", "SECURITY.md": "There is no release yet", "CHANGELOG.md": "its tag is not set yet"}

// ready fails unless the commit is what the version is to be: nothing is changed, each module needs this version of the
// library and of its other modules, no page says that there is no release, and the tags are there.
func ready(root, version string) error {
	changed, err := git(root, "status", "--porcelain")
	if err != nil {
		return err
	}
	if changed != "" {
		return fmt.Errorf("there are changes that are not committed:\n%s", changed)
	}
	tags, err := git(root, "tag", "--points-at", "HEAD")
	if err != nil {
		return err
	}
	var missing []string
	for _, folder := range modules {
		if tag := strings.TrimPrefix(folder+"/"+version, "/"); !slices.Contains(strings.Fields(tags), tag) {
			missing = append(missing, "git tag "+tag)
		}
		if folder == "" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, folder, "go.mod"))
		if err != nil {
			return err
		}
		f, err := modfile.Parse(folder, text, nil)
		if err != nil {
			return err
		}
		for _, r := range f.Require {
			if (r.Mod.Path == library || strings.HasPrefix(r.Mod.Path, library+"/")) && r.Mod.Version != version {
				return fmt.Errorf("%s/go.mod needs %s, and not %s", folder, r.Mod, version)
			}
		}
	}
	for file, says := range unreleased {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return err
		}
		if bytes.Contains(text, []byte(says)) {
			return fmt.Errorf("%s still says %q", file, says)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("tag the commit of %s first:\n%s", version, strings.Join(missing, "\n"))
	}
	return nil
}

func git(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// publish writes the module in the folder into the folder proxy, in the form of Go's proxies (go help goproxy).
func (m *maker) publish(folder string) error {
	path := strings.TrimSuffix(library+"/"+folder, "/")
	dir := filepath.Join(m.out, "proxy", path, "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	tag := strings.TrimPrefix(folder+"/"+m.version, "/")
	at, err := git(m.root, "log", "-1", "--format=%cI", tag)
	if err != nil {
		return err
	}
	mod, err := git(m.root, "show", tag+":"+strings.TrimPrefix(folder+"/go.mod", "/"))
	if err != nil {
		return err
	}
	made, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := modzip.CreateFromVCS(&archive, module.Version{Path: path, Version: m.version}, m.root, tag, folder); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "list"), []byte(m.version+"\n"), 0o644),
		os.WriteFile(filepath.Join(dir, m.version+".info"), fmt.Appendf(nil, "{%q: %q, %q: %q}\n", "Version", m.version, "Time", made.UTC().Format(time.RFC3339)), 0o644),
		os.WriteFile(filepath.Join(dir, m.version+".mod"), []byte(mod+"\n"), 0o644),
		os.WriteFile(filepath.Join(dir, m.version+".zip"), archive.Bytes(), 0o644),
	)
}

// env is the environment of a user who has what is published, and takes everything else from where this user has it.
func (m *maker) env() []string {
	proxies := "file://" + filepath.Join(m.out, "proxy")
	if cache, err := exec.Command("go", "env", "GOMODCACHE").Output(); err == nil {
		proxies += ",file://" + filepath.Join(strings.TrimSpace(string(cache)), "cache/download")
	}
	if proxy, err := exec.Command("go", "env", "GOPROXY").Output(); err == nil {
		proxies += "," + strings.TrimSpace(string(proxy))
	}
	return append(os.Environ(), "GOPROXY="+proxies, "GONOSUMDB="+library, "GOMODCACHE="+m.cache, "GOFLAGS=-modcacherw", "GOWORK=off")
}

// command installs the command as a user does, and packs it with what belongs to it.
func (m *maker) command(system, arch string) error {
	dir, err := os.MkdirTemp("", "succession-command-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// Without GOBIN, go install writes for other systems too; to GOPATH/bin, or a folder of the system there.
	install := exec.Command("go", "install", "-trimpath", "-ldflags=-s -w", library+"/cmd/succession@"+m.version)
	install.Env = append(m.env(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch, "GOPATH="+dir, "GOBIN=")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		return fmt.Errorf("go install: %w\n%s", err, out)
	}
	found, err := filepath.Glob(filepath.Join(dir, "bin", "succession*"))
	if err == nil && len(found) == 0 {
		found, err = filepath.Glob(filepath.Join(dir, "bin", "*", "succession*"))
	}
	if err != nil || len(found) != 1 {
		return fmt.Errorf("go install has written %q (%v)", found, err)
	}
	program := found[0]
	others, err := licences.Of(program, m.cache)
	if err != nil {
		return err
	}
	own, err := os.ReadFile(filepath.Join(m.root, "LICENSE"))
	if err != nil {
		return err
	}
	binary, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	name := filepath.Join(m.out, fmt.Sprintf("succession_%s_%s_%s", strings.TrimPrefix(m.version, "v"), system, arch))
	if err := sbom.Write(name+".cdx.json", program); err != nil {
		return err
	}
	files := []file{{filepath.Base(program), binary, 0o755}, {"LICENSE", own, 0o644}, {"THIRD-PARTY", others, 0o644}}
	if system == "windows" {
		return write(name+".zip", files, zipped)
	}
	return write(name+".tar.gz", files, tarred)
}

type file struct {
	name string
	text []byte
	mode int64
}

func write(path string, files []file, pack func(io.Writer, []file) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(pack(f, files), f.Close())
}

func tarred(w io.Writer, files []file) error {
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	for _, f := range files {
		if err := t.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.text)), Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		if _, err := t.Write(f.text); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}

func zipped(w io.Writer, files []file) error {
	z := zip.NewWriter(w)
	for _, f := range files {
		one, err := z.Create(f.name)
		if err != nil {
			return err
		}
		if _, err := one.Write(f.text); err != nil {
			return err
		}
	}
	return z.Close()
}
