//go:build linux

package main

import (
	"archive/tar"
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/succession-dev/succession/deploy/internal/build"
)

// The image has a service and nothing else, and the service runs with nothing else.
func TestImage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "image.tar")
	again := filepath.Join(t.TempDir(), "image.tar")
	for _, file := range []string{file, again} {
		if err := write(file, "service:1", runtime.GOARCH, "./examples/service", "service"); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := sum(t, file), sum(t, again); a != b {
		t.Errorf("the image has the sum %x, and when it is made again %x", a, b)
	}
	image, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	asDockerfile(t, config.Config)
	labelled(t, config)
	root := t.TempDir()
	extract(t, image, root)
	if os.Geteuid() != 0 {
		t.Skip("to run what is in an image takes root")
	}
	run(t, root, config.Config)
}

func sum(t *testing.T, file string) [32]byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(text)
}

// labelled checks that the image says what it is, of which commit, and from when.
func labelled(t *testing.T, c *v1.ConfigFile) {
	t.Helper()
	commit, err := build.Checked()
	if err != nil {
		t.Fatal(err)
	}
	const prefix = "org.opencontainers.image."
	l := c.Config.Labels
	if l[prefix+"title"] != "service" || l[prefix+"version"] != "1" || l[prefix+"revision"] != commit.ID || l[prefix+"source"] == "" || l[prefix+"licenses"] != "Apache-2.0" || !c.Created.Equal(commit.Time) {
		t.Errorf("the image is from %v, of the commit %+v, and has the labels %v", c.Created, commit, l)
	}
}

// asDockerfile checks that the Dockerfile says the same.
func asDockerfile(t *testing.T, c v1.Config) {
	t.Helper()
	text, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	building, image, ok := strings.Cut(string(text), "\nFROM scratch\n")
	entrypoint, _ := json.Marshal(c.Entrypoint)
	lines := strings.Split(strings.TrimSpace(image), "\n")
	want := []string{
		"ARG VERSION REVISION",
		`LABEL org.opencontainers.image.version="$VERSION" org.opencontainers.image.revision="$REVISION"`,
		"COPY --from=build /image/ /",
		"COPY --from=build " + authorities + " " + authorities,
		"COPY --from=build /program " + c.Entrypoint[0],
		"USER " + c.User,
		"ENTRYPOINT " + string(entrypoint),
	}
	if !ok || !slices.Equal(lines, want) {
		t.Errorf("the Dockerfile makes an image by\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	flags := strings.Join(build.Flags, " ")
	if !strings.Contains(building, "RUN install -d -m 1777 /image/tmp\n") {
		t.Error("the Dockerfile makes no /tmp")
	}
	if line := `RUN CGO_ENABLED=0 go build -C "$PACKAGE" ` + strings.Replace(flags, "-ldflags=-s -w", `-ldflags="-s -w"`, 1) + ` ` + zones + ` -o /program .`; !strings.Contains(building, line) {
		t.Errorf("the Dockerfile does not build by %s", line)
	}
}

// extract writes the files of the image below root.
func extract(t *testing.T, image v1.Image, root string) {
	t.Helper()
	files := mutate.Extract(image)
	defer files.Close()
	var names []string
	for r := tar.NewReader(files); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		path := filepath.Join(root, h.Name)
		if h.Typeflag == tar.TypeDir {
			if h.Name != "tmp" || h.Mode != 0o1777 {
				t.Errorf("the folder %s has the mode %o", h.Name, h.Mode)
			}
			if err := errors.Join(os.Mkdir(path, 0o755), os.Chmod(path, 0o777|os.ModeSticky)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, h.FileInfo().Mode())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(f, r); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"THIRD-PARTY", "program", "sbom.cdx.json", "tmp"}
	if _, err := os.Stat(authorities); err == nil {
		want = append(want, authorities[1:])
	}
	if slices.Sort(names); !slices.Equal(names, slices.Sorted(slices.Values(want))) {
		t.Errorf("the image has the files %q, want %q", names, want)
	}
}

// run runs the program below root, which it cannot leave, as the user of the image, with the arguments and the
// environment of the Deployment, but for the coordinator and the address. It answers what the Pod is asked.
func run(t *testing.T, root string, c v1.Config) {
	t.Helper()
	user, group, _ := strings.Cut(c.User, ":")
	uid, err1 := strconv.Atoi(user)
	gid, err2 := strconv.Atoi(group)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	volume := filepath.Join(root, "data")
	if err := errors.Join(os.Mkdir(volume, 0o700), os.Chown(volume, uid, gid)); err != nil {
		t.Fatal(err)
	}
	pod := container(t)
	args := slices.Clone(pod.Args)
	if i := slices.Index(args, "-http"); i >= 0 {
		args[i+1] = "127.0.0.1:0"
	}
	cmd := exec.Command(c.Entrypoint[0], args...)
	cmd.Dir, cmd.Env = "/", []string{"TZ=Asia/Kathmandu"}
	for _, e := range pod.Env {
		value := map[string]string{"POD_NAME": "web-1", "SUCCESSION_URL": "local:/data"}[e.Name]
		cmd.Env = append(cmd.Env, e.Name+"="+value)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	lines := bufio.NewScanner(log)
	address := ""
	for lines.Scan() {
		var line struct{ Time, Msg, Address string }
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			t.Errorf("the service says %s", lines.Text())
		}
		if line.Msg == "serving" {
			address = line.Address
			if !strings.HasSuffix(line.Time, "+05:45") {
				t.Errorf("the time in Kathmandu is %s: the image knows no time zones", line.Time)
			}
		}
		if line.Msg == "a report is sent" {
			break
		}
	}
	for path, says := range map[string]string{
		pod.LivenessProbe.HTTPGet.Path: "", pod.ReadinessProbe.HTTPGet.Path: "",
		"/leader": `"id":"web-1"`, "/metrics": `succession_leader{election="reports"} 1` + "\n", // where Prometheus asks by itself
	} {
		resp, err := http.Get("http://" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), says) {
			t.Errorf("%s: %s, %v, %s; want %s", path, resp.Status, err, body, says)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, log)
	if err := cmd.Wait(); err != nil {
		t.Errorf("after TERM: %v", err)
	}
}

// container returns the container of the Deployment of the service.
func container(t *testing.T) corev1.Container {
	t.Helper()
	text, err := os.ReadFile("../kubernetes/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var d appsv1.Deployment
	if err := yaml.UnmarshalStrict(text, &d); err != nil {
		t.Fatal(err)
	}
	return d.Spec.Template.Spec.Containers[0]
}
