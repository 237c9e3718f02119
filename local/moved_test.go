//go:build linux

package local_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/local"
)

// TestMoved says that a leader hears of it when others do not find its member any more, because a folder
// was moved, and that it can write nothing on condition of that member.
func TestMoved(t *testing.T) {
	for name, moves := range map[string]struct {
		folder string
		told   error
	}{
		"a folder above": {"above", backend.ErrSessionEnded},
		"the folder":     {"above/top", backend.ErrSessionEnded},
		"a folder below": {"above/top/a", backend.ErrNotMember},
		"the election's": {"above/top/a/e", backend.ErrNotMember},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			top := filepath.Join(dir, "above", "top")
			b, s := open(t, top)
			m := join(t, s, "a/e", "")
			_, done := watchPlace(t, s, m, ahead(t, s, m))
			if err := os.Rename(filepath.Join(dir, moves.folder), filepath.Join(dir, "away")); err != nil {
				t.Fatal(err)
			}
			_, other := open(t, top)
			if p := ahead(t, other, join(t, other, "a/e", "")); !p.First {
				t.Errorf("in a new folder: %+v", p)
			}
			if _, err := s.Put(t.Context(), "r", nil, &backend.If{Member: m}); !errors.Is(err, moves.told) {
				t.Errorf("a guarded Put: %v, want %v", err, moves.told)
			}
			if err := within(t, "WatchPlace", done); !errors.Is(err, moves.told) {
				t.Errorf("WatchPlace: %v, want %v", err, moves.told)
			}
			s, err := b.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := values(t, s, "a/e"); len(got) != 1 {
				t.Errorf("a session sees %q in line, want the one in the new folder", got)
			}
		})
	}
}

// TestCovered is TestMoved for a file system that is mounted over the folder, as at boot.
func TestCovered(t *testing.T) {
	p := startMounting(t, "covered", filepath.Join(t.TempDir(), "above", "top"))
	p.say(t, "other-leads")
	p.say(t, "told")
}

func covered(s backend.Session) error {
	ctx := context.Background()
	m, err := s.Join(ctx, "e", "", "")
	if err != nil {
		return err
	}
	p, err := s.Ahead(ctx, m.Member)
	if err != nil || !p.First {
		return fmt.Errorf("%+v, %w", p, err)
	}
	told := begin(func() error { return s.WatchPlace(ctx, m.Member, &p) })
	select {
	case err := <-told:
		return fmt.Errorf("WatchPlace before the mount: %w", err)
	case <-time.After(50 * time.Millisecond): // as in blocked
	}
	dir := os.Getenv(dirVar)
	if err := syscall.Mount("tmpfs", filepath.Dir(dir), "tmpfs", 0, ""); err != nil {
		return err
	}
	b, err := local.New(dir, nil)
	if err != nil {
		return err
	}
	other, err := b.Session(ctx)
	if err != nil {
		return err
	}
	later, err := other.Join(ctx, "e", "", "")
	if err != nil {
		return err
	}
	if p, err := other.Ahead(ctx, later.Member); err != nil || !p.First {
		return fmt.Errorf("%+v, %w", p, err)
	}
	fmt.Println("other-leads")
	if err := <-told; !errors.Is(err, backend.ErrSessionEnded) {
		return fmt.Errorf("WatchPlace: %w", err)
	}
	fmt.Println("told")
	return nil
}

// TestRemovedWhereMountedFrom says that who uses a folder that is mounted from elsewhere, as in a container, is told that it was removed
// there: nothing can be made in it any more.
func TestRemovedWhereMountedFrom(t *testing.T) {
	p := startMounting(t, "removed", filepath.Join(t.TempDir(), "top"))
	p.say(t, "told")
	p.say(t, "refused")
}

func removed(b *local.Backend) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	dir := os.Getenv(dirVar)
	from := dir + "-host"
	if err := errors.Join(b.Close(), os.Mkdir(from, 0o700), os.Mkdir(dir, 0o700), syscall.Mount(from, dir, "", syscall.MS_BIND, "")); err != nil {
		return err
	}
	b, err := local.New(dir, nil)
	if err != nil {
		return err
	}
	defer b.Close()
	s, err := b.Session(ctx)
	if err != nil {
		return err
	}
	m, err := s.Join(ctx, "e", "", "")
	if err != nil {
		return err
	}
	p, err := s.Ahead(ctx, m.Member)
	if err != nil || !p.First {
		return fmt.Errorf("%+v, %w", p, err)
	}
	told := begin(func() error { return s.WatchPlace(ctx, m.Member, &p) })
	if err := errors.Join(os.RemoveAll(from), os.Mkdir(from, 0o700)); err != nil {
		return err
	}
	if err := <-told; err == nil || ctx.Err() != nil {
		return fmt.Errorf("WatchPlace: %w", err)
	}
	fmt.Println("told")
	for {
		s, err := b.Session(ctx)
		if err == nil {
			_, err = s.Join(ctx, "e", "", "")
		}
		if errors.Is(err, backend.ErrInvalid) && strings.Contains(err.Error(), "was removed where it is mounted from") {
			break
		}
		if ctx.Err() != nil {
			return fmt.Errorf("Join: %w", err)
		}
	}
	fmt.Println("refused")
	return nil
}

// TestStarved says that a leader that has no descriptor left hears that it was removed.
func TestStarved(t *testing.T) {
	dir := t.TempDir()
	p := start(t, "starved", dir)
	position := p.say(t, "leads")[0]
	if err := os.Remove(filepath.Join(dir, "e", fmt.Sprintf("@n_%010d", position))); err != nil {
		t.Fatal(err)
	}
	p.say(t, "told")
}

func starved(s backend.Session) error {
	ctx := context.Background()
	m, err := s.Join(ctx, "e", "", "")
	if err != nil {
		return err
	}
	p, err := s.Ahead(ctx, m.Member)
	if err != nil || !p.First {
		return fmt.Errorf("%+v, %w", p, err)
	}
	var most syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &most); err != nil {
		return err
	}
	most.Cur = 0 // what is open stays open
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &most); err != nil {
		return err
	}
	if _, err := os.Open("/"); !errors.Is(err, syscall.EMFILE) {
		return fmt.Errorf("there are descriptors left: %w", err)
	}
	fmt.Println("leads", m.Position)
	for {
		err := s.WatchPlace(ctx, m.Member, &p)
		if errors.Is(err, backend.ErrNotMember) {
			break
		}
		if !errors.Is(err, backend.ErrUnavailable) {
			return fmt.Errorf("WatchPlace: %w", err)
		}
		time.Sleep(10 * time.Millisecond) // as an election does
	}
	fmt.Println("told")
	return nil
}

// TestReadOnly says that on a file system that has become read-only one can look, and the next in line
// leads, and that whatever would write fails as what may pass by itself.
func TestReadOnly(t *testing.T) {
	p := startMounting(t, "read-only", filepath.Join(t.TempDir(), "top"))
	p.say(t, "leads")
}

func readOnly(b *local.Backend) error {
	ctx := context.Background()
	dir := os.Getenv(dirVar)
	if err := b.Close(); err != nil {
		return err
	}
	if err := errors.Join(os.Mkdir(dir, 0o700), syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700")); err != nil {
		return err
	}
	var sessions []backend.Session
	var members []backend.Member
	for range 2 {
		b, err := local.New(dir, nil)
		if err != nil {
			return err
		}
		s, err := b.Session(ctx)
		if err != nil {
			return err
		}
		m, err := s.Join(ctx, "e", "", "")
		if err != nil {
			return err
		}
		sessions, members = append(sessions, s), append(members, m.Member)
	}
	lender, err := sessions[0].Join(ctx, "lent", "", "")
	if err != nil {
		return err
	}
	lent, err := sessions[0].Files(lender.Member)
	if err != nil {
		return err
	}
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("remount: %w", err)
	}
	if err := sessions[0].Leave(ctx, members[0]); err != nil {
		return fmt.Errorf("Leave: %w", err)
	}
	// Who has the file open holds the member, as long as it cannot be removed.
	if err := sessions[0].Leave(ctx, lender.Member); !errors.Is(err, backend.ErrUnavailable) {
		return fmt.Errorf("Leave of a member that was lent: %w, want ErrUnavailable", err)
	}
	if p, err := sessions[0].Ahead(ctx, lender.Member); err != nil || !p.First {
		return fmt.Errorf("Ahead of a member that could not leave: %+v, %w", p, err)
	}
	lent[0].Close()
	looks, err := local.New(dir, nil)
	if err != nil {
		return err
	}
	defer looks.Close()
	s, err := looks.Session(ctx)
	if err != nil {
		return err
	}
	if l, err := s.Line(ctx, "e"); err != nil || len(l.Members) != 1 {
		return fmt.Errorf("Line: %+v, %w", l, err)
	}
	p, err := sessions[1].Ahead(ctx, members[1])
	if err != nil || !p.First {
		return fmt.Errorf("Ahead: %+v, %w", p, err)
	}
	if _, err := s.Put(ctx, "r", nil, nil); !errors.Is(err, backend.ErrUnavailable) {
		return fmt.Errorf("Put: %w, want ErrUnavailable", err)
	}
	fmt.Println("leads", p.Token)
	return nil
}

// TestInterruptedMake says that a folder is never seen without the rights of the top folder, also if the
// process that makes it fails when it has made it: otherwise others of the group could never use it. Here
// it fails since the umask keeps the process itself from opening what it has made.
func TestInterruptedMake(t *testing.T) {
	user := os.Geteuid()
	if user == 0 { // whom no rights keep from anything
		user = owner
	}
	above := t.TempDir()
	dir := filepath.Join(above, "top")
	if err := errors.Join(os.Chmod(filepath.Dir(above), 0o755), os.Mkdir(dir, 0o700), os.Chown(dir, user, -1), os.Chmod(dir, 0o770)); err != nil {
		t.Fatal(err)
	}
	p := startAs(t, user, "umask", dir)
	p.say(t, "failed")
	made, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range made {
		if fi, err := e.Info(); err != nil || e.IsDir() && fi.Mode().Perm() != 0o770 {
			t.Errorf("%s was left with %v, %v", e.Name(), fi.Mode(), err)
		}
	}
}

func umask(s backend.Session) error {
	syscall.Umask(0o777)
	if _, err := s.Join(context.Background(), "a/e", "", ""); err == nil {
		return errors.New("could join")
	}
	fmt.Println("failed")
	return nil
}
