//go:build linux

package sqltest

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := stopServer(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// postgres returns the folder with the socket of the server, which the first call starts.
var postgres = sync.OnceValues(startServer)

var (
	running *exec.Cmd // nil if no server was started
	folder  string
	log     sync.WaitGroup // what reads the server's log
)

// port is a part of the socket's name; nothing listens there.
const port = "5432"

const missing = "PostgreSQL is missing: the tests need the programs initdb and postgres, in PATH or where Debian has them; apt-get install postgresql"

func startServer() (socket string, err error) {
	bin, err := programs()
	if err != nil {
		return "", err
	}
	if folder, err = os.MkdirTemp("", "fence-postgres-"); err != nil {
		return "", err
	}
	who := &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT} // ends the server with its processes, and in no order
	if os.Geteuid() == 0 {                                  // as which PostgreSQL refuses to run
		if who.Credential, err = somebodyElse(); err != nil {
			return "", err
		}
		if err := os.Chown(folder, int(who.Credential.Uid), int(who.Credential.Gid)); err != nil {
			return "", err
		}
	}
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.Dir, cmd.SysProcAttr = folder, who
		cmd.Env = append(os.Environ(), "LC_ALL=C", "HOME="+folder)
		return cmd
	}
	data := filepath.Join(folder, "data")
	if out, err := command("initdb", "-D", data, "-U", "test", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync").CombinedOutput(); err != nil {
		return "", fmt.Errorf("initdb: %w\n%s", err, out)
	}
	cmd := command("postgres", "-D", data, "-p", port, "-c", "listen_addresses=", "-c", "unix_socket_directories="+folder,
		"-c", "fsync=off", "-c", "full_page_writes=off", "-c", "synchronous_commit=off", "-c", "shared_buffers=16MB")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	running = cmd
	lines := bufio.NewScanner(stderr)
	var before strings.Builder
	for lines.Scan() {
		fmt.Fprintln(&before, lines.Text())
		if strings.Contains(lines.Text(), "database system is ready to accept connections") {
			log.Go(func() { io.Copy(io.Discard, stderr) }) // a full pipe would stop the server
			return folder, nil
		}
	}
	return "", fmt.Errorf("postgres did not start:\n%s", &before)
}

// stopServer ends the server that this program has started, if there is one.
func stopServer() error {
	if folder == "" {
		return nil
	}
	var stopped error
	if running != nil {
		stopped = running.Process.Signal(syscall.SIGQUIT)
		log.Wait()
		running.Wait() // its status says that it was told to quit
	}
	return errors.Join(stopped, os.RemoveAll(folder))
}

// programs returns the folder with the newest programs of PostgreSQL. Debian has those of
// the server not in PATH.
func programs() (bin string, err error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		path, err = filepath.EvalSymlinks(path)
		return filepath.Dir(path), err
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", err
	}
	newest := 0
	for _, path := range found {
		dir := filepath.Dir(path)
		version, err := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
		if err == nil && version > newest {
			newest, bin = version, dir
		}
	}
	if bin == "" {
		return "", errors.New(missing)
	}
	return bin, nil
}

// somebodyElse returns a user who is not root.
func somebodyElse() (*syscall.Credential, error) {
	who, err := user.Lookup("postgres")
	if err != nil {
		who, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(who.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(who.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

var databases atomic.Int64 // that were created on the server

// newURL creates a database on the server, and returns how pgx reaches it.
func newURL() (string, error) {
	socket, err := postgres()
	if err != nil {
		return "", err
	}
	url := func(name string) string {
		return fmt.Sprintf("host=%s port=%s user=test dbname=%s", socket, port, name)
	}
	server, err := sql.Open("pgx", url("postgres"))
	if err != nil {
		return "", err
	}
	defer server.Close()
	name := fmt.Sprintf("db%d", databases.Add(1))
	_, err = server.Exec("CREATE DATABASE " + name)
	return url(name), err
}

// waitBlocked returns when a statement waits for a lock of another transaction. It fails the
// test if what should wait is done.
func waitBlocked(t *testing.T, d *database, done <-chan error) {
	t.Helper()
	for blocked := 0; blocked == 0; {
		select {
		case err := <-done:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
		const waiting = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
		if err := d.db.QueryRowContext(context.Background(), waiting).Scan(&blocked); err != nil {
			t.Fatal(err)
		}
	}
}
