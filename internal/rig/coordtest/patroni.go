//go:build linux

package coordtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patroniStart bounds the start of a Patroni, which needs ten seconds on a machine that has nothing else to do.
const patroniStart = 2 * time.Minute

// A Patroni is two machines, and an etcd. On each machine is a PostgreSQL, and Patroni, which has one follow the other, and take
// over from it. Commits wait for the standby (synchronous_mode). A machine is a namespace of processes: to kill the server is to
// kill all of them, and the standby then takes over within 20 s, the least that Patroni allows.
type Patroni struct {
	Cluster
	bin   string // the folder of PostgreSQL's programs
	who   *syscall.Credential
	etcd  *Etcd
	rest  []string // the addresses of each Patroni's REST API
	asker asker
}

// NewPatroni starts them for one test. The test is skipped where Patroni is not installed, and fails without root, which a
// namespace takes.
func NewPatroni(t testing.TB) *Patroni {
	t.Helper()
	if _, err := exec.LookPath("patroni"); err != nil {
		t.Skip("Patroni is missing, so nothing is known of it; apt-get install patroni python3-etcd")
	}
	if os.Geteuid() != 0 {
		t.Fatal("a namespace of processes takes root")
	}
	bin, err := postgresPrograms()
	if err != nil {
		t.Fatal(err)
	}
	who, err := nobody()
	if err != nil {
		t.Fatal(err)
	}
	etcd := NewEtcd(t, nil)
	p, err := startCoordinator(t.Context(), "Patroni", patroniStart, func() *Patroni { return &Patroni{bin: bin, who: who, etcd: etcd} })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	showLogs(t, &p.Cluster)
	return p
}

func (p *Patroni) create() error {
	if err := p.makeFolder("patroni-", false, ""); err != nil {
		return err
	}
	if err := os.Chmod(p.dir, 0o755); err != nil {
		return err
	}
	ports, err := freePorts(4)
	if err != nil {
		return err
	}
	p.leads = p.leadsBy
	for i := range 2 {
		dir := filepath.Join(p.dir, patroniName(i))
		addr, rest := loopback(ports[i]), loopback(ports[2+i])
		// JSON is YAML.
		config, err := json.Marshal(map[string]any{
			"scope":   "succession",
			"name":    patroniName(i),
			"restapi": map[string]any{"listen": rest, "connect_address": rest},
			"etcd3":   map[string]any{"host": p.etcd.Addrs()[0]},
			"bootstrap": map[string]any{
				"dcs": map[string]any{
					"ttl": 20, "loop_wait": 1, "retry_timeout": 3, "master_start_timeout": 0, "synchronous_mode": true,
					"postgresql": map[string]any{
						"use_slots": false, "remove_data_directory_on_diverged_timelines": true, "remove_data_directory_on_rewind_failure": true,
						"parameters": map[string]any{"max_connections": 200},
					},
				},
				"initdb": []any{map[string]any{"auth": "trust"}, map[string]any{"locale": "C"}, map[string]any{"encoding": "UTF8"}, "no-sync"},
				"pg_hba": []any{"host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"},
			},
			"postgresql": map[string]any{
				"listen": addr, "connect_address": addr, "data_dir": filepath.Join(dir, "data"), "bin_dir": p.bin, "pgpass": filepath.Join(dir, "pgpass"),
				"parameters":     map[string]any{"unix_socket_directories": "", "shared_buffers": "16MB", "dynamic_shared_memory_type": "mmap"},
				"authentication": map[string]any{"superuser": map[string]any{"username": "postgres"}, "replication": map[string]any{"username": "postgres"}},
			},
		})
		if err != nil {
			return err
		}
		file := filepath.Join(dir, "patroni.yml")
		err = errors.Join(os.Mkdir(dir, 0o755), os.Chown(dir, int(p.who.Uid), int(p.who.Gid)), os.WriteFile(file, config, 0o644))
		if err != nil {
			return err
		}
		p.rest = append(p.rest, rest)
		p.servers = append(p.servers, &Server{
			addr: addr,
			log:  filepath.Join(dir, "log"),
			spec: spec{
				argv: []string{
					"sh", "-c", `mount --make-rprivate / && mount -t proc proc /proc && exec setpriv --pdeathsig KILL --reuid "$1" --regid "$2" --clear-groups patroni "$3"`,
					"sh", strconv.Itoa(int(p.who.Uid)), strconv.Itoa(int(p.who.Gid)), file,
				},
				probe:     func(ctx context.Context, _ string) error { return p.settled(ctx) },
				portTaken: "Address already in use",
				own:       func(cmd *exec.Cmd) { cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS },
			},
		})
	}
	return nil
}

func patroniName(i int) string { return "node" + strconv.Itoa(i) }

// settled returns nil if one server leads, and commits wait for the other one, which follows.
func (p *Patroni) settled(ctx context.Context) error {
	var said struct {
		Members []struct{ Role, State string }
	}
	for i := range p.servers {
		status, answer, err := p.asker.ask(ctx, http.MethodGet, p.rest[i], "/cluster", "")
		if err == nil && status != http.StatusOK {
			err = errors.New(answer)
		}
		if err == nil {
			err = json.Unmarshal([]byte(answer), &said)
		}
		if err != nil {
			return err
		}
		roles := make(map[string]bool)
		for _, m := range said.Members {
			roles[m.Role] = m.State == "running" || m.State == "streaming"
		}
		if !roles["leader"] || !roles["sync_standby"] {
			return fmt.Errorf("it is not settled: %s", answer)
		}
	}
	return nil
}

// leadsBy returns s if Patroni says that it leads.
func (p *Patroni) leadsBy(ctx context.Context, s *Server) (*Server, error) {
	status, answer, err := p.asker.ask(ctx, http.MethodGet, p.rest[slices.Index(p.servers, s)], "/primary", "")
	if err == nil && status != http.StatusOK {
		err = errors.New(answer)
	}
	return s, err
}

// Switchover has the other server take over from the one that leads, as an operator does, and returns when Patroni has done it.
func (p *Patroni) Switchover(ctx context.Context) error {
	s, err := p.Leader(ctx)
	if err != nil {
		return err
	}
	i := slices.Index(p.servers, s)
	status, answer, err := p.asker.ask(ctx, http.MethodPost, p.rest[i], "/switchover", fmt.Sprintf(`{"leader":%q,"candidate":%q}`, patroniName(i), patroniName(1-i)))
	if err == nil && status != http.StatusOK {
		err = errors.New(answer)
	}
	return err
}

// Hang stops Patroni on the machine of s, and not the PostgreSQL there: if that leads, it goes on when the other one takes over, and knows nothing of
// it. resume lets Patroni go on.
func (p *Patroni) Hang(s *Server) (resume func() error, err error) {
	proc := s.process()
	if proc == nil {
		return nil, errNotRunning
	}
	children, err := childrenOf(proc.os.Pid)
	if err != nil {
		return nil, err
	}
	for _, pid := range children {
		title, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.Contains(string(title), "patroni.yml") {
			return func() error { return syscall.Kill(pid, syscall.SIGCONT) }, syscall.Kill(pid, syscall.SIGSTOP)
		}
	}
	return nil, errors.New("Patroni does not run there")
}
