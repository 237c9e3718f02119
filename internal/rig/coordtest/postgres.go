//go:build linux

package coordtest

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend/kit/backoff"
)

// postgresStart bounds the start of a PostgreSQL, which needs a second on a machine that has nothing else to do.
const postgresStart = time.Minute

// PostgresOptions are the options of a Postgres; the zero value of each field is its default.
type PostgresOptions struct {
	// Standby adds a second server, which follows the first by streaming replication; see [Postgres.Promote].
	Standby bool
	// Synchronous has commits wait for the standby.
	Synchronous bool
	// Clock lets [Postgres.SetClock] set the wall clock that the servers read.
	Clock bool
	// Disk keeps the data on the disk, and has writes wait for it; see [Cluster].
	Disk bool
	// CertFile and KeyFile have the servers speak TLS with whoever wants that.
	CertFile, KeyFile string
	// Config are more settings, such as "max_connections=20".
	Config []string
}

// A Postgres is a PostgreSQL of one server, or of a primary and a standby. Its only user is postgres, who needs no
// password on loopback, and its database has the same name. Commits are synced to disk. Its methods are safe for concurrent use.
//
// PostgreSQL refuses to run as root. If the tests do, the servers run as the user nobody.
type Postgres struct {
	Cluster
	opts PostgresOptions
	bin  string // the folder of its programs
	who  *syscall.Credential

	lagging atomic.Int64 // the process of the standby that was stopped by Lag; 0 for none
	primary atomic.Int32 // the index of the server that was the primary at first, or that FailOver has made it
}

// StartPostgres starts a PostgreSQL and blocks until it serves. The caller stops it. opts may be nil.
func StartPostgres(ctx context.Context, opts *PostgresOptions) (*Postgres, error) {
	var o PostgresOptions
	if opts != nil {
		o = *opts
	}
	bin, err := postgresPrograms()
	if err != nil {
		return nil, err
	}
	var who *syscall.Credential
	if os.Geteuid() == 0 {
		if who, err = nobody(); err != nil {
			return nil, err
		}
	}
	return startCoordinator(ctx, "PostgreSQL", postgresStart, func() *Postgres {
		return &Postgres{opts: o, bin: bin, who: who}
	})
}

// NewPostgres starts a PostgreSQL for one test and stops it when the test ends; see [StartPostgres]. The test fails
// where PostgreSQL is not installed.
func NewPostgres(t testing.TB, opts *PostgresOptions) *Postgres {
	t.Helper()
	p, err := StartPostgres(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	showLogs(t, &p.Cluster)
	return p
}

// postgresPrograms returns the folder with the newest programs of PostgreSQL. Debian has those of the server not in PATH.
func postgresPrograms() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		path, err = filepath.EvalSymlinks(path)
		return filepath.Dir(path), err
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is good
	bin, newest := "", 0
	for _, path := range found {
		dir := filepath.Dir(path)
		if version, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir))); version > newest {
			bin, newest = dir, version
		}
	}
	if bin == "" {
		return "", errors.New("PostgreSQL is missing: the tests need the programs initdb and postgres, in PATH or where Debian has them; apt-get install postgresql")
	}
	return bin, nil
}

// PostgresStarts returns how long the program of the server takes to start, at the median of ten times. Each connection takes
// a process of it.
func PostgresStarts() (time.Duration, error) {
	bin, err := postgresPrograms()
	if err != nil {
		return 0, err
	}
	var all []time.Duration
	for range 10 {
		begun := time.Now()
		if err := exec.Command(filepath.Join(bin, "postgres"), "--version").Run(); err != nil {
			return 0, err
		}
		all = append(all, time.Since(begun))
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}

// nobody returns the credentials of the user nobody.
func nobody() (*syscall.Credential, error) {
	u, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
}

// own makes a program of PostgreSQL run as the user that owns the data.
func (p *Postgres) own(cmd *exec.Cmd) {
	cmd.SysProcAttr.Credential = p.who
	cmd.Dir = p.dir
	cmd.Env = append(cmd.Env, "LC_ALL=C", "HOME="+p.dir)
	if p.opts.Clock {
		cmd.Env = append(cmd.Env, "LD_PRELOAD="+filepath.Join(p.dir, "wallclock.so"), "WALLCLOCK="+p.clockFile())
	}
}

// run runs a program of PostgreSQL.
func (p *Postgres) run(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, name), args...)
	cmd.SysProcAttr, cmd.Env = new(syscall.SysProcAttr), os.Environ()
	p.own(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// create makes the folder of each server and finds its ports.
func (p *Postgres) create() (err error) {
	p.leads = p.leadsBy
	if err := p.makeFolder("postgres-", p.opts.Disk, ""); err != nil {
		return err
	}
	if err := p.give(p.dir); err != nil {
		return err
	}
	if p.opts.Clock {
		lib, err := compiledWallclock()
		if err == nil {
			err = copyFile(lib, filepath.Join(p.dir, "wallclock.so"), 0o755) // the user may not be able to read the cache folder
		}
		if err == nil {
			err = p.SetClock(0)
		}
		if err != nil {
			return err
		}
	}
	template, err := p.template()
	if err != nil {
		return err
	}
	settings := p.opts.Config
	if p.opts.CertFile != "" {
		settings = append([]string{"ssl=on"}, settings...)
		for name, from := range map[string]string{"ssl_cert_file": p.opts.CertFile, "ssl_key_file": p.opts.KeyFile} {
			file := filepath.Join(p.dir, name) // the user may not be able to read the other
			if err := cmp.Or(copyFile(from, file, 0o600), p.give(file)); err != nil {
				return err
			}
			settings = append(settings, name+"="+file)
		}
	}
	names := []string{"primary"}
	if p.opts.Standby {
		names = append(names, "standby")
	}
	ports, err := freePorts(len(names))
	if err != nil {
		return err
	}
	for i, name := range names {
		dir := filepath.Join(p.dir, name)
		data := filepath.Join(dir, "data")
		if err := errors.Join(os.Mkdir(dir, 0o755), p.give(dir)); err != nil {
			return err
		}
		argv := []string{
			filepath.Join(p.bin, "postgres"), "-D", data, "-p", strconv.Itoa(ports[i]),
			"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
			"-c", "shared_buffers=16MB", "-c", "max_connections=1000", "-c", "log_min_messages=warning",
			// Wherever a schedule of faults takes a checkpoint's time, the test waits for it.
			"-c", "checkpoint_timeout=1h", "-c", "max_wal_size=64MB",
			// A server that is killed leaves its shared memory behind: in its folder, which is removed.
			"-c", "dynamic_shared_memory_type=mmap",
		}
		for _, setting := range settings {
			argv = append(argv, "-c", setting)
		}
		reset := func() error {
			if err := os.RemoveAll(data); err != nil {
				return err
			}
			return p.copy(template, data)
		}
		if i == 0 {
			if err := reset(); err != nil {
				return err
			}
		}
		p.servers = append(p.servers, &Server{
			addr: loopback(ports[i]),
			log:  filepath.Join(dir, "log"),
			spec: spec{argv: argv, data: data, reset: reset, probe: p.serves, portTaken: "could not bind", own: p.own},
		})
	}
	return nil
}

// start starts the servers. A standby begins with a copy of the primary's data.
func (p *Postgres) start(ctx context.Context) error {
	if !p.opts.Standby {
		return p.Cluster.start(ctx)
	}
	primary, standby := p.roles()
	if err := primary.Start(); err != nil {
		return err
	}
	if err := primary.Ready(ctx); err != nil {
		return err
	}
	return p.follow(ctx, standby, primary)
}

// roles returns the primary and the standby.
func (p *Postgres) roles() (primary, standby *Server) {
	i := p.primary.Load()
	return p.servers[i], p.servers[1-i]
}

// follow starts a server that does not run, and has no data, as the standby of the primary.
func (p *Postgres) follow(ctx context.Context, standby, primary *Server) error {
	host, port, _ := net.SplitHostPort(primary.addr)
	if err := p.run(ctx, "pg_basebackup", "-h", host, "-p", port, "-U", "postgres", "-D", standby.spec.data, "-R", "-c", "fast", "-X", "stream", "--no-sync"); err != nil {
		return err
	}
	if err := standby.Start(); err != nil {
		return err
	}
	if err := standby.Ready(ctx); err != nil {
		return err
	}
	for { // it answers a little before it follows
		answer, err := askPostgres(ctx, primary.addr, "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE state = 'streaming')")
		if err == nil && strings.HasSuffix(answer, "t") {
			break
		}
		if ctx.Err() != nil {
			return fmt.Errorf("the standby does not follow: %w", errors.Join(err, context.Cause(ctx)))
		}
		time.Sleep(5 * time.Millisecond)
	}
	if !p.opts.Synchronous {
		return nil
	}
	// The standby's data were copied without that. So it waits for nobody when it becomes the primary.
	if err := appendTo(filepath.Join(primary.spec.data, "postgresql.conf"), "synchronous_standby_names='*'\n"); err != nil {
		return err
	}
	return p.run(ctx, "pg_ctl", "reload", "-D", primary.spec.data)
}

// FailOver has the standby take over from the primary, which is killed, and makes the old primary the new one's standby. If beside
// is not nil, the old primary is paused until the other takes writes, goes on while beside runs, and is killed then. FailOver
// blocks until all is as it was before, with changed roles. One call at a time.
func (p *Postgres) FailOver(ctx context.Context, beside func()) error {
	old, next := p.roles()
	if beside == nil {
		old.Kill()
	} else if err := old.Pause(); err != nil {
		return err
	}
	if err := p.run(ctx, "pg_ctl", "promote", "-w", "-D", next.spec.data); err != nil {
		return err
	}
	if beside != nil {
		if err := old.Resume(); err != nil {
			return err
		}
		beside()
		old.Kill()
	}
	if err := os.RemoveAll(old.spec.data); err != nil {
		return err
	}
	p.primary.Store(1 - p.primary.Load())
	return p.follow(ctx, old, next)
}

// leadsBy returns s if it takes writes.
func (p *Postgres) leadsBy(ctx context.Context, s *Server) (*Server, error) {
	answer, err := askPostgres(ctx, s.addr, "SELECT pg_is_in_recovery()")
	if err == nil && !strings.HasSuffix(answer, "f") {
		err = errors.New("it follows another one")
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Promote makes the standby a primary, as an operator or a program that watches over both does, and blocks until it takes
// writes. It does nothing to the other server. What a standby has not received that lags is lost.
func (p *Postgres) Promote(ctx context.Context) error {
	if pid := p.lagging.Swap(0); pid != 0 {
		// If it went on, it would read what the kernel has kept for it. The server starts its processes anew without it.
		if err := syscall.Kill(int(pid), syscall.SIGKILL); err != nil {
			return err
		}
		// Until it has noticed, it would take the request, and forget it.
		ctx, cancel := context.WithTimeout(ctx, postgresStart)
		defer cancel()
		for syscall.Kill(int(pid), 0) == nil {
			if err := backoff.Sleep(ctx, 5*time.Millisecond); err != nil {
				return err
			}
		}
		if err := p.servers[1].Ready(ctx); err != nil {
			return err
		}
	}
	return p.run(ctx, "pg_ctl", "promote", "-w", "-D", p.servers[1].spec.data)
}

// Lag stops the standby from receiving anything more, for good. What was received is applied.
func (p *Postgres) Lag() error {
	s := p.servers[1].process()
	if s == nil {
		return errNotRunning
	}
	children, err := childrenOf(s.os.Pid)
	if err != nil {
		return err
	}
	for _, pid := range children {
		title, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.Contains(string(title), "walreceiver") {
			p.lagging.Store(int64(pid))
			return syscall.Kill(pid, syscall.SIGSTOP)
		}
	}
	return errors.New("the standby receives nothing")
}

// Backup copies the data of the servers, which stand still meanwhile; see [Cluster.Backup].
func (p *Postgres) Backup(context.Context) (restore func(context.Context) error, err error) {
	dir, err := os.MkdirTemp(p.dir, "backup-")
	if err != nil {
		return nil, err
	}
	err = p.Pause()
	for i, s := range p.servers {
		if err == nil {
			err = p.copy(s.spec.data, filepath.Join(dir, strconv.Itoa(i)))
		}
	}
	if err = errors.Join(err, p.Resume()); err != nil {
		return nil, fmt.Errorf("back up: %w", err)
	}
	return func(ctx context.Context) error {
		p.Kill()
		for i, s := range p.servers {
			err := os.RemoveAll(s.spec.data)
			if err == nil {
				err = p.copy(filepath.Join(dir, strconv.Itoa(i)), s.spec.data)
			}
			if err != nil {
				return fmt.Errorf("restore a backup: %w", err)
			}
		}
		return p.Cluster.start(ctx)
	}, nil
}

// SetClock sets the wall clock that the servers read; see [ZooKeeper.SetClock]. It needs the option Clock.
func (p *Postgres) SetClock(shift time.Duration) error {
	if !p.opts.Clock {
		return errors.New("set clock: the PostgreSQL was started without the option Clock")
	}
	return setClock(p.clockFile(), shift)
}

func (p *Postgres) clockFile() string { return filepath.Join(p.dir, "clock") }

// template returns the data of a server that has just been made, which takes two seconds, once for each version.
func (p *Postgres) template() (string, error) {
	programs, err := filesKey(filepath.Join(p.bin, "initdb"), filepath.Join(p.bin, "postgres"))
	if err != nil {
		return "", err
	}
	return cached(context.Background(), append(programs, "postgres template 1"...), "postgres-data", func(part string) error {
		data := filepath.Join(p.dir, "template")
		// A server that a test starts writes little: a log of small files is copied in less time.
		err := p.run(context.Background(), "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--wal-segsize=1")
		if err == nil {
			err = copyTree(data, part, -1, -1)
		}
		return errors.Join(err, os.RemoveAll(data))
	})
}

// copy copies a folder of data for the user as whom the servers run.
func (p *Postgres) copy(from, to string) error {
	uid, gid := -1, -1
	if p.who != nil {
		uid, gid = int(p.who.Uid), int(p.who.Gid)
	}
	return copyTree(from, to, uid, gid)
}

// give makes the user as whom the servers run the owner of a file.
func (p *Postgres) give(name string) error {
	if p.who == nil {
		return nil
	}
	return os.Chown(name, int(p.who.Uid), int(p.who.Gid))
}

// copyTree copies a folder with the modes of its files, and makes somebody their owner; -1 is who copies.
func copyTree(from, to string, uid, gid int) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		switch {
		case d.IsDir():
			err = os.Mkdir(target, 0o700)
		case d.Type().IsRegular():
			err = copyFile(path, target, 0o600)
		default: // sockets
			return nil
		}
		if err == nil {
			err = os.Lchown(target, uid, gid)
		}
		return err
	})
}

func copyFile(from, to string, mode fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func appendTo(name, text string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	return errors.Join(err, f.Close())
}

// serves returns nil when the server at addr lets a client in, and has the data of this cluster: another's server may
// have got the port.
func (p *Postgres) serves(ctx context.Context, addr string) error {
	answer, err := askPostgres(ctx, addr, "SHOW data_directory")
	if err == nil && !strings.Contains(answer, p.dir) {
		err = fmt.Errorf("%w: another server answers at %s", errPortTaken, addr)
	}
	return err
}

// Exec runs statements on the primary, as its user.
func (p *Postgres) Exec(ctx context.Context, statements string) error {
	primary, err := p.Leader(ctx)
	if err == nil {
		_, err = askPostgres(ctx, primary.addr, statements)
	}
	return err
}

// askPostgres returns what the server at addr answers to a query, as it is on the wire.
func askPostgres(ctx context.Context, addr, query string) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	send := func(kind string, body string) error {
		b := binary.BigEndian.AppendUint32([]byte(kind), uint32(len(body)+4))
		_, err := conn.Write(append(b, body...))
		return err
	}
	if err := send("", "\x00\x03\x00\x00user\x00postgres\x00database\x00postgres\x00\x00"); err != nil {
		return "", err
	}
	if _, err := answerOf(conn); err != nil {
		return "", err
	}
	if err := send("Q", query+"\x00"); err != nil {
		return "", err
	}
	return answerOf(conn)
}

// answerOf returns the rows that a server sends until it is ready for the next request.
func answerOf(r io.Reader) (string, error) {
	var all strings.Builder
	for {
		var head [5]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return "", err
		}
		n := binary.BigEndian.Uint32(head[1:])
		if n < 4 || n > 1<<16 {
			return "", errors.New("the answer is none of PostgreSQL")
		}
		body := make([]byte, n-4)
		if _, err := io.ReadFull(r, body); err != nil {
			return "", err
		}
		switch head[0] {
		case 'Z':
			return all.String(), nil
		case 'E':
			return "", fmt.Errorf("it answers %q", body)
		}
		if head[0] == 'D' { // a row, whose last column is the end of it
			all.Write(body)
		}
	}
}
