// Container writes an image with one program of this module, and nothing else: what the Dockerfile
// beside it makes, without Docker. The file is for docker load, podman load and ctr images import.
//
//	go run -C deploy ./container -o /tmp/service.tar -tag service:1 ./examples/service
//	go run -C deploy ./container -o /tmp/succession.tar
package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/succession-dev/succession/deploy/internal/build"
	"github.com/succession-dev/succession/deploy/internal/licences"
	"github.com/succession-dev/succession/deploy/internal/sbom"
)

// authorities are the certificates that TLS to a coordinator trusts by default.
const authorities = "/etc/ssl/certs/ca-certificates.crt"

func main() {
	out := flag.String("o", "image.tar", "the file of the image")
	title := flag.String("title", "", "what it is, for its labels; empty is the name of the program's folder")
	tag := flag.String("tag", "succession:latest", "the name of the image")
	arch := flag.String("arch", runtime.GOARCH, "what it is for, as Go calls it")
	flag.Parse()
	pkg := "./cmd/succession"
	if flag.NArg() > 0 {
		pkg = flag.Arg(0)
	}
	if err := write(*out, *tag, *arch, pkg, cmp.Or(*title, filepath.Base(pkg))); err != nil {
		fmt.Fprintln(os.Stderr, "container:", err)
		os.Exit(1)
	}
}

// zones is the flag of go build with which a program has the time zones of the world in it: an image from scratch has no files of
// them.
const zones = "-tags=timetzdata"

// write writes an image of the program of the package to the file. It is the same each time, as all times are those of the commit.
func write(file, tag, arch, pkg, title string) error {
	ref, err := name.NewTag(tag)
	if err != nil {
		return err
	}
	commit, err := build.Checked()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "succession-container-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "program")
	if err := build.Program(program, pkg, arch, zones); err != nil {
		return err
	}
	others, err := licences.Of(program, "")
	if err != nil {
		return err
	}
	list := filepath.Join(dir, "sbom.cdx.json")
	if err := sbom.Write(list, program); err != nil {
		return err
	}
	layer, err := root(program, list, others, commit.Time)
	if err != nil {
		return err
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer)), nil })
	if err != nil {
		return err
	}
	image, err := mutate.Append(empty.Image, mutate.Addendum{Layer: l, History: v1.History{Created: v1.Time{Time: commit.Time}, CreatedBy: "succession/deploy/container"}})
	if err != nil {
		return err
	}
	image, err = mutate.ConfigFile(image, withConfig(image, arch, labels(title, ref.TagStr(), commit)))
	if err != nil {
		return err
	}
	return tarball.WriteToFile(file, ref, image)
}

// labels are what a registry, or somebody who finds the image on a machine, wants to know; their names are those of the
// OCI's image specification.
func labels(title, version string, c build.Commit) map[string]string {
	const prefix = "org.opencontainers.image."
	return map[string]string{
		prefix + "title": title, prefix + "version": version, prefix + "revision": c.ID, prefix + "created": c.Time.Format(time.RFC3339),
		prefix + "source": "https://github.com/succession-dev/succession", prefix + "licenses": "Apache-2.0",
	}
}

// withConfig returns the image's configuration with what the Dockerfile says.
func withConfig(image v1.Image, arch string, labels map[string]string) *v1.ConfigFile {
	c, err := image.ConfigFile()
	if err != nil {
		panic(err) // it was made here
	}
	c = c.DeepCopy()
	c.OS, c.Architecture = "linux", arch
	c.Config.Labels = labels
	if at, err := time.Parse(time.RFC3339, labels["org.opencontainers.image.created"]); err == nil {
		c.Created = v1.Time{Time: at}
	}
	c.Config.User = "65532:65532"
	c.Config.Entrypoint = []string{"/program"}
	return c
}

// root returns the root of a file system as tar: the program, the licences of what it links and the list of that, the authorities
// of this machine, and a /tmp for all.
func root(program, list string, others []byte, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	put := func(path string, content []byte, mode int64) error {
		if err := w.WriteHeader(&tar.Header{Name: path, Mode: mode, Size: int64(len(content)), Typeflag: tar.TypeReg, ModTime: at}); err != nil {
			return err
		}
		_, err := w.Write(content)
		return err
	}
	add := func(path, from string, mode int64) error {
		content, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		return put(path, content, mode)
	}
	if err := errors.Join(
		add("program", program, 0o755), put("THIRD-PARTY", others, 0o644), add("sbom.cdx.json", list, 0o644),
		w.WriteHeader(&tar.Header{Name: "tmp/", Mode: 0o1777, Typeflag: tar.TypeDir, ModTime: at}),
	); err != nil {
		return nil, err
	}
	switch err := add(authorities[1:], authorities, 0o644); {
	case errors.Is(err, os.ErrNotExist):
		fmt.Fprintf(os.Stderr, "container: there is no %s here, so the image trusts no authorities; name yours with ca-file= in URLs\n", authorities)
	case err != nil:
		return nil, err
	}
	return b.Bytes(), w.Close()
}
