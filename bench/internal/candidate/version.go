package candidate

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/hashicorp/consul/api"
	"github.com/jackc/pgx/v5"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// Unknown stands for a version that could not be found out.
const Unknown = "?"

// Version returns the library's version; none for this project, which is the tree that this
// program was built from.
func (l Library) Version() string {
	switch {
	case strings.HasPrefix(l.Peer, coordtest.PeerKazoo):
		for _, python := range []string{"python3", "/usr/bin/python3"} {
			if out, err := exec.Command(python, "-c", "import kazoo.version; print(kazoo.version.__version__)").Output(); err == nil {
				return strings.TrimSpace(string(out))
			}
		}
		return Unknown
	case l.Peer != "":
		return curatorVersion()
	case l.Copied != "":
		return l.Copied
	case l.Module == "":
		return ""
	}
	info, ok := debug.ReadBuildInfo()
	if l.Program != nil {
		path, err := l.Program()
		if err == nil {
			info, err = buildinfo.ReadFile(path)
		}
		ok = err == nil
	}
	if !ok {
		return Unknown
	}
	for _, m := range info.Deps {
		if m.Path == l.Module {
			return strings.TrimPrefix(m.Version, "v")
		}
	}
	return Unknown
}

// curatorVersion is in the name of the file beside the one that has none.
func curatorVersion() string {
	const before, after = "/usr/share/java/curator-recipes-", ".jar"
	files, err := filepath.Glob(before + "*" + after)
	if err != nil || len(files) != 1 {
		return Unknown
	}
	return strings.TrimSuffix(strings.TrimPrefix(files[0], before), after)
}

// ServerVersion asks the server at addr; local has none.
func ServerVersion(ctx context.Context, coordinator, addr string) (string, error) {
	switch coordinator {
	case Local:
		return "", nil
	case Etcd:
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}})
		if err != nil {
			return "", err
		}
		defer c.Close()
		s, err := c.Status(ctx, addr)
		if err != nil {
			return "", err
		}
		return s.Version, nil
	case Consul:
		c, err := api.NewClient(&api.Config{Address: addr})
		if err != nil {
			return "", err
		}
		self, err := c.Agent().Self()
		if err != nil {
			return "", err
		}
		return fmt.Sprint(self["Config"]["Version"]), nil
	case Postgres:
		c, err := pgx.Connect(ctx, PostgresConfig(addr))
		if err != nil {
			return "", err
		}
		defer c.Close(ctx)
		// What Debian says of its package follows.
		version, _, _ := strings.Cut(c.PgConn().ParameterStatus("server_version"), " ")
		return version, nil
	case Redis:
		text, err := coordtest.RedisSays(ctx, addr, "INFO server")
		if err != nil {
			return "", err
		}
		_, after, _ := strings.Cut(text, "redis_version:")
		version, _, _ := strings.Cut(after, "\r")
		return version, nil
	case Kubernetes:
		// The server itself does not know: its version is set by the scripts that release it.
		path, err := coordtest.ServerBinary(ctx, apiServer)
		if err != nil {
			return "", err
		}
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return "", err
		}
		return strings.TrimPrefix(info.Main.Version, "v"), nil
	}
	text, err := coordtest.FourLetter(ctx, addr, "srvr")
	if err != nil {
		return "", err
	}
	_, after, _ := strings.Cut(text, "version: ")
	version, _, _ := strings.Cut(after, "-")
	return version, nil
}

// Commit returns the commit of this tree, with a plus sign if anything was changed since but figures and texts. It is empty where there is no git.
func Commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return ""
	}
	commit := strings.TrimSpace(string(out))
	if exec.CommandContext(ctx, "git", "diff", "--quiet", "HEAD", "--", ":/", ":(exclude,top)*.json", ":(exclude,top)*.md").Run() != nil {
		commit += "+"
	}
	return commit
}

// Machine says what else the numbers depend on.
func Machine() []string {
	out := []string{
		strings.Replace(runtime.Version(), "go", "Go ", 1) + " on " + runtime.GOOS + "/" + runtime.GOARCH,
		fmt.Sprintf("%d cores", runtime.NumCPU()),
	}
	if b, err := exec.Command("java", "-version").CombinedOutput(); err == nil {
		if _, version, quoted := strings.Cut(string(b), `"`); quoted {
			version, _, _ = strings.Cut(version, `"`)
			out = append(out, "Java "+version)
		}
	}
	return out
}
