// Container writes an image with one program of this module, and nothing else: what the Dockerfile
// beside it makes, without Docker. The file is for docker load, podman load and ctr images import.
//
//	go run -C deploy ./container -o /tmp/service.tar -tag service:1 ./examples/service
//	go run -C deploy ./container -o /tmp/succession.tar
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/succession-dev/succession/deploy/internal/build"
	"github.com/succession-dev/succession/deploy/internal/licences"
)

// authorities are the certificates that TLS to a coordinator trusts by default.
const authorities = "/etc/ssl/certs/ca-certificates.crt"

func main() {
	out := flag.String("o", "image.tar", "the file of the image")
	tag := flag.String("tag", "succession:latest", "the name of the image")
	arch := flag.String("arch", runtime.GOARCH, "what it is for, as Go calls it")
	flag.Parse()
	pkg := "./cmd/succession"
	if flag.NArg() > 0 {
		pkg = flag.Arg(0)
	}
	if err := write(*out, *tag, *arch, pkg); err != nil {
		fmt.Fprintln(os.Stderr, "container:", err)
		os.Exit(1)
	}
}

// write writes an image of the program of the package to the file.
func write(file, tag, arch, pkg string) error {
	ref, err := name.NewTag(tag)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "succession-container-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "program")
	if err := build.Program(program, pkg, arch); err != nil {
		return err
	}
	others, err := licences.Of(program, "")
	if err != nil {
		return err
	}
	layer, err := root(program, others)
	if err != nil {
		return err
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer)), nil })
	if err != nil {
		return err
	}
	image, err := mutate.AppendLayers(empty.Image, l)
	if err != nil {
		return err
	}
	image, err = mutate.ConfigFile(image, withConfig(image, arch))
	if err != nil {
		return err
	}
	return tarball.WriteToFile(file, ref, image)
}

// withConfig returns the image's configuration with what the Dockerfile says.
func withConfig(image v1.Image, arch string) *v1.ConfigFile {
	c, err := image.ConfigFile()
	if err != nil {
		panic(err) // it was made here
	}
	c = c.DeepCopy()
	c.OS, c.Architecture = "linux", arch
	c.Config.User = "65532:65532"
	c.Config.Entrypoint = []string{"/program"}
	return c
}

// root returns the root of a file system as tar: the program, the licences of what it links, and the authorities of this
// machine.
func root(program string, others []byte) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	put := func(path string, content []byte, mode int64) error {
		if err := w.WriteHeader(&tar.Header{Name: path, Mode: mode, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
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
	if err := errors.Join(add("program", program, 0o755), put("THIRD-PARTY", others, 0o644)); err != nil {
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
