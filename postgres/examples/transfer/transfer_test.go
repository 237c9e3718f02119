//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// The instances are processes of the test's own program.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-pause") {
		main()
		return
	}
	coordtest.Main(m, 1)
}

// Leaders are killed, stopped and woken in the middle of their work. No coin is lost or made, and no transfer follows one of a later
// leader.
func TestTransfer(t *testing.T) {
	server := coordtest.NewPostgres(t, nil)
	addr := server.Addrs()[0]
	database := "postgres://postgres@" + addr + "/postgres?sslmode=disable"
	url := "postgres://" + addr + "/postgres?user=postgres&sslmode=disable&ttl=2s"
	if err := makeTables(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	b, err := succession.Connect(t.Context(), url) // the schema
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := b.Session(t.Context()); err != nil {
		t.Fatal(err)
	}
	db, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.Background())
	ask := func(sql string) (n int64) {
		t.Helper()
		if err := db.QueryRow(t.Context(), sql).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	await := func(what string, f func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !f(); {
			if time.Now().After(end) {
				t.Fatal("waited for a minute for " + what)
			}
			time.Sleep(10 * time.Millisecond) // the tables tell nobody
		}
	}

	instances, started := make(map[string]*exec.Cmd), 0 // by the name that the server knows
	start := func() {
		t.Helper()
		started++
		name := fmt.Sprintf("transfer-%d", started)
		cmd := exec.Command(os.Args[0], "-url", url, "-database", database+"&application_name="+name, "-pause", "5ms")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		instances[name] = cmd
	}
	end := func(cmd *exec.Cmd) {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it says that it was killed
	}
	defer func() {
		for _, cmd := range instances {
			end(cmd)
		}
	}()
	for range 3 {
		start()
	}
	// leader is the one that was at the tables last: it is there all the time.
	leader := func() (name string) {
		t.Helper()
		await("a leader", func() bool {
			return db.QueryRow(t.Context(), "SELECT application_name FROM pg_stat_activity WHERE application_name LIKE 'transfer-%' ORDER BY query_start DESC LIMIT 1").Scan(&name) == nil
		})
		return name
	}
	for i := range 6 {
		before := ask("SELECT count(*) FROM transfers")
		await("transfers", func() bool { return ask("SELECT count(*) FROM transfers") >= before+5 })
		token := ask("SELECT max(token) FROM transfers") // if another leads by now, that is enough
		victim := leader()
		if i%2 == 0 {
			end(instances[victim])
			delete(instances, victim)
			start()
		} else if err := instances[victim].Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		await("the next leader", func() bool { return ask("SELECT max(token) FROM transfers") > token })
		if i%2 == 1 {
			if err := instances[victim].Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
		}
	}
	if coins := ask("SELECT (SELECT coins FROM checking) + (SELECT coins FROM savings)"); coins != 1000 {
		t.Errorf("there are %d coins, of a thousand", coins)
	}
	if falls := ask("SELECT count(*) FROM transfers a JOIN transfers b ON b.savings = a.savings + 1 WHERE b.token < a.token"); falls != 0 {
		t.Errorf("%d transfers follow one of a later leader", falls)
	}
	t.Logf("%d transfers, by %d leaders", ask("SELECT count(*) FROM transfers"), ask("SELECT count(DISTINCT token) FROM transfers"))
}
