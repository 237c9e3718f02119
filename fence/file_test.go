//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package fence_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/succession-dev/succession/fence"
)

// asProcess is the environment variable that makes this test program another process.
const asProcess = "SUCCESSION_FENCE_PROCESS"

func TestMain(m *testing.M) {
	switch os.Getenv(asProcess) {
	case "writes":
		writes(fence.File(os.Args[1]), os.Args[2])
	case "holds":
		holds(fence.File(os.Args[1]))
	default:
		os.Exit(m.Run())
	}
}

// process returns this test program as another process that does what is said.
func process(t *testing.T, what string, args ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), asProcess+"="+what)
	cmd.Stderr = os.Stderr
	return cmd
}

func newFile(t *testing.T) fence.File { return fence.File(filepath.Join(t.TempDir(), "state")) }

// content returns what a file has; empty if there is none.
func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(b)
}

func TestFileRefusesSmallerTokens(t *testing.T) {
	f := newFile(t)
	for i, s := range []struct{ token, largest uint64 }{{7, 7}, {7, 7}, {9, 9}, {7, 9}, {1<<64 - 1, 1<<64 - 1}, {9, 1<<64 - 1}} {
		before := content(t, string(f))
		data := fmt.Sprintf("step %d", i)
		err := f.Write(t.Context(), s.token, []byte(data))
		if s.token == s.largest {
			if err != nil || content(t, string(f)) != data {
				t.Errorf("step %d: token %d is refused: %v", i, s.token, err)
			}
		} else {
			wantStale(t, err, fence.StaleError{Resource: string(f), Token: s.token, Largest: s.largest})
			if content(t, string(f)) != before {
				t.Errorf("step %d: it was written", i)
			}
		}
		if got, want := content(t, string(f)+".token"), fmt.Sprintln(s.largest); got != want {
			t.Errorf("step %d: the token file has %q, want %q", i, got, want)
		}
	}
}

func TestFileRefusesZero(t *testing.T) {
	f := newFile(t)
	if err := f.Write(t.Context(), 0, nil); !errors.Is(err, fence.ErrInvalid) {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(string(f))); err != nil || len(left) != 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}

// To read is to show the token.
func TestFileRead(t *testing.T) {
	f := newFile(t)
	if _, err := f.Read(t.Context(), 5); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is no file, and Read says %v", err)
	}
	if err := f.Write(t.Context(), 5, []byte("old")); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Read(t.Context(), 7); string(got) != "old" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	wantStale(t, f.Write(t.Context(), 5, []byte("late")), fence.StaleError{Resource: string(f), Token: 5, Largest: 7})
	if _, err := f.Read(t.Context(), 5); !errors.Is(err, fence.ErrStale) {
		t.Errorf("a smaller token reads: %v", err)
	}
}

// A token that cannot be read is not taken for none, and not written over.
func TestFileWithADamagedToken(t *testing.T) {
	for _, damage := range append(notTokens, "7", "7\n\n", "\n7\n", "7\n9\n", "7\x00\n") {
		f := newFile(t)
		if err := os.WriteFile(string(f)+".token", []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		if damage == "7\n" {
			continue // a token and a newline
		}
		err := f.Write(t.Context(), 9, []byte("data"))
		if err == nil || errors.Is(err, fence.ErrStale) || errors.Is(err, fence.ErrInvalid) {
			t.Errorf("%q: %v", damage, err)
		}
		if got := content(t, string(f)+".token"); got != damage || content(t, string(f)) != "" {
			t.Errorf("%q: it was written over with %q", damage, got)
		}
	}
}

func FuzzTokenFile(f *testing.F) {
	for _, s := range append(notTokens, "7", "7\n", "9\n", "11\n", "7\r\n", "\xff\n") {
		f.Add([]byte(s))
	}
	f.Cleanup(fence.SetSync(func(*os.File) error { return nil }))
	f.Fuzz(func(t *testing.T, damage []byte) {
		file := newFile(t)
		if err := os.WriteFile(string(file)+".token", damage, 0o600); err != nil {
			t.Fatal(err)
		}
		largest, err := fence.ParseToken(strings.TrimSuffix(string(damage), "\n"))
		whole := err == nil && strings.HasSuffix(string(damage), "\n")
		ran := false
		err = file.Do(t.Context(), 9, func() error { ran = true; return nil })
		switch {
		case whole && largest <= 9:
			if err != nil || !ran || content(t, string(file)+".token") != "9\n" {
				t.Errorf("%q: ran: %t, %v", damage, ran, err)
			}
		case whole:
			wantStale(t, err, fence.StaleError{Resource: string(file), Token: 9, Largest: largest})
		case err == nil:
			t.Errorf("%q is taken for a token", damage)
		}
		if (err != nil) == ran {
			t.Errorf("%q: ran: %t, %v", damage, ran, err)
		}
	})
}

func TestFileIsForOneAtATime(t *testing.T) {
	f := newFile(t)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	err := f.Do(t.Context(), 5, func() error {
		for _, token := range []uint64{5, 7} {
			if err := f.Do(ctx, token, func() error { t.Errorf("two run, the other with token %d", token); return nil }); !errors.Is(err, enough) {
				t.Errorf("got %v", err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := f.Do(ctx, 5, nil); err != nil {
		t.Errorf("the file is still locked: %v", err)
	}
}

func TestFileReturnsWhatTheFunctionReturns(t *testing.T) {
	full := errors.New("disk full")
	if err := newFile(t).Do(t.Context(), 5, func() error { return full }); err != full {
		t.Errorf("got %v", err)
	}
}

// The token is on the disk before the data, and the data before Write returns.
func TestFileSyncs(t *testing.T) {
	f := newFile(t)
	dir := filepath.Dir(string(f))
	var got []string
	note := func(what string) {
		got = append(got, fmt.Sprintf("%s, token %q, data %q", what, content(t, string(f)+".token"), content(t, string(f))))
	}
	t.Cleanup(fence.SetSync(func(file *os.File) error {
		name, err := filepath.Rel(dir, file.Name())
		if err != nil {
			return err
		}
		note("sync " + name)
		return nil
	}))
	if err := f.Write(t.Context(), 5, []byte("old")); err != nil {
		t.Fatal(err)
	}
	got = nil
	for range 2 { // who wrote the token before may have been killed before it was synced
		err := f.Do(t.Context(), 7, func() error { note("do"); return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Write(t.Context(), 9, []byte("new")); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`sync state.token.tmp, token "5\n", data "old"`,
		`sync ., token "7\n", data "old"`,
		`do, token "7\n", data "old"`,
		`sync ., token "7\n", data "old"`,
		`do, token "7\n", data "old"`,
		`sync state.token.tmp, token "7\n", data "old"`,
		`sync ., token "9\n", data "old"`,
		`sync state.tmp, token "9\n", data "old"`,
		`sync ., token "9\n", data "new"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("in this order:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What cannot be made to last has failed, wherever that is.
func TestFileOnABadDisk(t *testing.T) {
	bad := errors.New("input/output error")
	for fails := range 4 {
		f := newFile(t)
		var syncs int
		restore := fence.SetSync(func(*os.File) error {
			defer func() { syncs++ }()
			if syncs == fails {
				return bad
			}
			return nil
		})
		err := f.Write(t.Context(), 5, []byte("data"))
		restore()
		if !errors.Is(err, bad) {
			t.Errorf("sync %d fails, and Write says %v", fails, err)
		}
		if fails < 2 && content(t, string(f)) != "" {
			t.Errorf("sync %d of the token fails, and the data are written", fails)
		}
		if err := f.Write(t.Context(), 5, []byte("again")); err != nil || content(t, string(f)) != "again" {
			t.Errorf("sync %d failed, and later Write says %v", fails, err)
		}
	}
}

func TestFileKeepsItsPermissions(t *testing.T) {
	f := newFile(t)
	if err := f.Write(t.Context(), 5, nil); err != nil {
		t.Fatal(err)
	}
	created, err := os.Create(string(f) + ".created")
	if err != nil {
		t.Fatal(err)
	}
	defer created.Close()
	if got, want := mode(t, string(f)), mode(t, created.Name()); got != want {
		t.Errorf("a new file has %v, want %v as os.Create", got, want)
	}
	if err := os.Chmod(string(f), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := f.Write(t.Context(), 5, nil); err != nil {
		t.Fatal(err)
	}
	if got := mode(t, string(f)); got != 0o640 {
		t.Errorf("afterwards it has %v, want %v", got, fs.FileMode(0o640))
	}
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

// What a crash has left is not in the way. Nobody else can have it written somewhere else.
func TestFileAfterACrash(t *testing.T) {
	f := newFile(t)
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("of others"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, string(f)+".tmp"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(string(f)+".token.tmp", []byte("9999 and more than a token has"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Write(t.Context(), 5, []byte("data")); err != nil {
		t.Fatal(err)
	}
	if content(t, other) != "of others" || content(t, string(f)) != "data" || content(t, string(f)+".token") != "5\n" {
		t.Errorf("there stands %q, %q; and elsewhere %q", content(t, string(f)), content(t, string(f)+".token"), content(t, other))
	}
	for _, tmp := range []string{".tmp", ".token.tmp"} {
		if _, err := os.Lstat(string(f) + tmp); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", tmp, err)
		}
	}
}

// holds is a process that stays in Do until it is killed.
func holds(f fence.File) {
	err := f.Do(context.Background(), 5, func() error {
		fmt.Println("holds")
		_, err := io.Copy(io.Discard, os.Stdin) // which stays open as long as the test runs
		return err
	})
	fmt.Println(err)
}

// A process that is killed within Do leaves its token, and no lock.
func TestFileOfAKilledProcess(t *testing.T) {
	f := newFile(t)
	cmd := process(t, "holds", string(f))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "holds\n" {
		t.Errorf("it printed %q, %v", line, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Do(ctx, 7, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("another process is in Do, and this one gets %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	wantStale(t, f.Do(ctx, 4, nil), fence.StaleError{Resource: string(f), Token: 4, Largest: 5})
	if err := f.Do(ctx, 5, nil); err != nil {
		t.Error(err)
	}
}

// writes is a process that writes with growing tokens, beginning with the given one. It
// checks that it finds no larger one, and prints its own when it has written.
func writes(f fence.File, first string) {
	token, err := strconv.ParseUint(first, 10, 64)
	if err != nil {
		panic(err)
	}
	for range 50 {
		token += rand.Uint64N(20)
		err := f.Do(context.Background(), token, func() error {
			found, err := os.ReadFile(string(f))
			if err == nil {
				before, err := strconv.ParseUint(string(found), 10, 64)
				if err != nil || before > token {
					return fmt.Errorf("token %d runs behind %q", token, found)
				}
			} else if !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return os.WriteFile(string(f), fmt.Append(nil, token), 0o600) // empty for a moment, which only Do hides
		})
		if errors.Is(err, fence.ErrStale) {
			continue
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(token)
	}
}

func TestFileOfManyProcesses(t *testing.T) {
	f := newFile(t)
	var all []*exec.Cmd
	var printed []*strings.Builder
	for i := range 4 {
		cmd := process(t, "writes", string(f), strconv.Itoa(1+i))
		out := new(strings.Builder)
		cmd.Stdout = out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all, printed = append(all, cmd), append(printed, out)
	}
	var largest uint64
	for i, cmd := range all {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		for s := range strings.FieldsSeq(printed[i].String()) {
			token, err := strconv.ParseUint(s, 10, 64)
			if err != nil {
				t.Error(err)
			}
			largest = max(largest, token)
		}
	}
	if got := content(t, string(f)); got != strconv.FormatUint(largest, 10) || content(t, string(f)+".token") != got+"\n" {
		t.Errorf("there stands %q with token %q; the largest was %d", got, content(t, string(f)+".token"), largest)
	}
}
