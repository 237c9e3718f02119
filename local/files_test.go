//go:build linux

package local_test

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/local"
	"github.com/succession-dev/succession/memory"
)

// sleeper starts a process that does nothing. It inherits the files.
func sleeper(t *testing.T, files ...*os.File) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.ExtraFiles = files
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd
}

// TestFiles says that a member whose files were given to a child stands after its parent has
// died, until the child has died too. Other children do not matter.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	b, s := open(t, dir)
	m := join(t, s, "e", "leader")
	_, waiting := open(t, dir)
	w := join(t, waiting, "e", "waiting")

	held, err := s.Files(m)
	if err != nil || len(held) != 1 {
		t.Fatal(held, err)
	}
	child := sleeper(t, held...)
	held[0].Close()
	sleeper(t) // has nothing of it

	local.Abandon(b)
	if got := values(t, waiting, "e"); len(got) != 2 {
		t.Errorf("%q stand in line while the child lives, want both", got)
	}
	gone := make(chan error, 1)
	go func() { gone <- waiting.Gone(t.Context(), m) }()
	select {
	case err := <-gone:
		t.Fatalf("Gone while the child lives: %v", err)
	default:
	}
	child.Process.Kill()
	if err := <-gone; err != nil {
		t.Fatal(err)
	}
	if p, err := waiting.Ahead(t.Context(), w); err != nil || !p.First {
		t.Errorf("Ahead %+v, %v; want to be first", p, err)
	}
}

// The files of a term are those of its member, and there are none where no files hold members.
func TestTermFiles(t *testing.T) {
	dir := t.TempDir()
	b, s := open(t, dir)
	term, err := elect.New(b, "e", nil).Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	held, err := term.Files()
	if err != nil || len(held) != 1 {
		t.Fatal(held, err)
	}
	local.Abandon(b)
	_, other := open(t, dir)
	if got := values(t, other, "e"); len(got) != 1 {
		t.Errorf("%q stand in line while the files are open, want the leader", got)
	}
	held[0].Close()
	if err := other.Gone(t.Context(), term.Member()); err != nil {
		t.Error(err)
	}
	if _, err := term.Files(); !errors.Is(err, backend.ErrNotMember) || s.Err() == nil {
		t.Errorf("Files of a term that was lost: %v, want %v", err, backend.ErrNotMember)
	}
	term, err = elect.New(memory.New(nil).Client("a"), "e", nil).Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer term.Resign(t.Context())
	if held, err := term.Files(); len(held) != 0 || err != nil {
		t.Errorf("Files on another coordinator: %v, %v; want none", held, err)
	}
}

// TestFilesLeave says that Leave removes a member, whoever else has its files.
func TestFilesLeave(t *testing.T) {
	dir := t.TempDir()
	_, s := open(t, dir)
	if _, err := s.Files(backend.Member{Line: "e", Key: "n_0000000001", Position: 1}); !errors.Is(err, backend.ErrNotMember) {
		t.Errorf("Files of nobody's place: %v, want %v", err, backend.ErrNotMember)
	}
	m := join(t, s, "e", "leader")
	held, err := s.Files(m)
	if err != nil || len(held) != 1 {
		t.Fatal(held, err)
	}
	defer held[0].Close()
	if err := s.Leave(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if got := values(t, s, "e"); len(got) != 0 {
		t.Errorf("%q stand in line, want nobody", got)
	}
	if _, err := s.Files(m); !errors.Is(err, backend.ErrNotMember) {
		t.Errorf("Files after Leave: %v, want %v", err, backend.ErrNotMember)
	}
}
