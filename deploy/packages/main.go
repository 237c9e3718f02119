// Packages builds Debian and RPM packages of the command, with its manual pages and the completions of
// bash, zsh and fish, and the checksums of all that the folder has to publish. The version is that of the command: a tag, or what Go makes of the commit. All times are those of
// the commit, so that whoever builds them again gets the same bytes.
//
//	go run -C deploy ./packages -o /tmp/packages
//	go run -C deploy ./packages -o /tmp/packages -arch arm64
package main

import (
	"cmp"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	_ "github.com/goreleaser/nfpm/v2/rpm"

	"github.com/succession-dev/succession/deploy/internal/build"
	"github.com/succession-dev/succession/deploy/internal/licences"
	"github.com/succession-dev/succession/deploy/internal/sbom"
)

//go:embed nfpm.yaml
var config string

//go:embed copyright
var copyright string

// maintainer is who answers for the packages, as nfpm.yaml has it.
const maintainer = "The succession project <dev@succession.example>"

func main() {
	out := flag.String("o", ".", "the folder that the packages are written to")
	arch := flag.String("arch", runtime.GOARCH, "what they are for, as Go calls it")
	flag.Parse()
	files, err := packages(*out, *arch)
	if err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
	fmt.Println(strings.Join(files, "\n"))
}

// packages builds a package of each format in the folder out, and returns their files.
func packages(out, arch string) (made []string, err error) {
	stage, err := os.MkdirTemp("", "succession-packages-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(stage)
	root, err := build.Root()
	if err != nil {
		return nil, err
	}
	commit, err := build.Checked()
	if err != nil {
		return nil, err
	}
	version, err := fill(stage, arch)
	if err != nil {
		return nil, err
	}
	if err := document(stage, root, version, commit.Time); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	values := map[string]string{"ARCH": arch, "VERSION": version, "STAGE": stage, "ROOT": root}
	for _, format := range []string{"deb", "rpm"} {
		file, err := pack(out, format, values, commit.Time)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", format, err)
		}
		made = append(made, file)
	}
	return made, build.Sums(out)
}

// fill puts the command into the folder, with what the command itself writes, and returns its version.
func fill(stage, arch string) (version string, err error) {
	program := filepath.Join(stage, "succession")
	if err := build.Program(program, "./cmd/succession", arch); err != nil {
		return "", err
	}
	others, err := licences.Of(program, "")
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(stage, "THIRD-PARTY"), others, 0o644); err != nil {
		return "", err
	}
	if err := sbom.Write(filepath.Join(stage, "sbom.cdx.json"), program); err != nil {
		return "", err
	}
	runs := program // on this machine
	if arch != runtime.GOARCH {
		runs = filepath.Join(stage, "here")
		if err := build.Program(runs, "./cmd/succession", ""); err != nil {
			return "", err
		}
	}
	say := func(args ...string) ([]byte, error) {
		cmd := exec.Command(runs, args...)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("succession %s: %w", strings.Join(args, " "), err)
		}
		return out, nil
	}
	completions := filepath.Join(stage, "completions")
	if err := os.Mkdir(completions, 0o755); err != nil {
		return "", err
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script, err := say("completion", shell)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(completions, "succession."+shell), script, 0o644); err != nil {
			return "", err
		}
	}
	pages := filepath.Join(stage, "man")
	if _, err := say("man", pages); err != nil {
		return "", err
	}
	if err := compress(pages); err != nil {
		return "", err
	}
	answer, err := say("version", "-o", "json")
	if err != nil {
		return "", err
	}
	var v struct{ Version string }
	if err := json.Unmarshal(answer, &v); err != nil {
		return "", err
	}
	if !strings.HasPrefix(v.Version, "v") {
		return "", fmt.Errorf("the command has the version %q: build it in a clone of the repository", cmp.Or(v.Version, "unknown"))
	}
	return v.Version, nil
}

// document puts what Debian wants of each package into the folder: what has changed, as the project and as the package says it, and
// under which terms it comes.
func document(stage, root, version string, at time.Time) error {
	changes, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	debian := fmt.Sprintf("succession (%s-1) unstable; urgency=medium\n\n  * %s; changelog.gz has what is new.\n\n -- %s  %s\n",
		debianVersion(version), version, maintainer, at.Format(time.RFC1123Z))
	return errors.Join(
		compressed(filepath.Join(stage, "changelog.gz"), changes),
		compressed(filepath.Join(stage, "changelog.Debian.gz"), []byte(debian)),
		os.WriteFile(filepath.Join(stage, "copyright"), []byte(copyright), 0o644),
	)
}

// debianVersion returns a version of Go in the form of Debian, as nfpm makes it: what comes before a version sorts before it.
func debianVersion(version string) string {
	number, before, is := strings.Cut(strings.TrimPrefix(version, "v"), "-")
	if !is {
		return number
	}
	return number + "~" + before
}

// compress compresses the manual pages in the folder, as Debian wants them.
func compress(dir string) error {
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) == 0 {
		return errors.Join(err, errors.New("there are no manual pages"))
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err == nil {
			err = compressed(page+".gz", text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// compressed writes the text to the file, compressed, without a name or a time.
func compressed(file string, text []byte) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	z, _ := gzip.NewWriterLevel(f, gzip.BestCompression)
	_, err = z.Write(text)
	return errors.Join(err, z.Close(), f.Close())
}

// pack writes a package of the format into the folder out, and returns its file.
func pack(out, format string, values map[string]string, at time.Time) (string, error) {
	c, err := nfpm.ParseWithEnvMapping(strings.NewReader(config), func(name string) string { return values[name] })
	if err != nil {
		return "", err
	}
	info, err := c.Get(format)
	if err != nil {
		return "", err
	}
	info.MTime, info.RPM.BuildHost = at, "succession"
	info = nfpm.WithDefaults(info)
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return "", err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return "", err
	}
	file := filepath.Join(out, packager.ConventionalFileName(info))
	f, err := os.Create(file)
	if err != nil {
		return "", err
	}
	return file, errors.Join(packager.Package(info, f), f.Close())
}
