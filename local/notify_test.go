//go:build linux

package local_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/local"
)

// TestWatchedFolder says that who watches a record hears of it whatever has become of its folder meanwhile: it was cleared
// while somebody else had it open, at once or in two steps, or moved, and moved back.
func TestWatchedFolder(t *testing.T) {
	held := func(t *testing.T, dir string) {
		f, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
	}
	check := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, steps := range map[string][]func(t *testing.T, dir string){
		"cleared": {func(t *testing.T, dir string) {
			held(t, dir)
			check(t, os.RemoveAll(dir))
		}},
		"emptied, and removed": {func(t *testing.T, dir string) {
			held(t, dir)
			files, err := filepath.Glob(filepath.Join(dir, "*"))
			check(t, err)
			for _, file := range files {
				check(t, os.Remove(file))
			}
		}, func(t *testing.T, dir string) { check(t, os.Remove(dir)) }},
		"moved and moved back": {func(t *testing.T, dir string) {
			check(t, os.Rename(dir, dir+"2"))
			check(t, os.Rename(dir+"2", dir))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			_, s := open(t, top)
			v, err := s.Put(t.Context(), "r", []byte("1"), nil)
			check(t, err)
			// It may see that there is no such record for a moment, or from then on.
			watched := begin(func() error {
				r := backend.Record{Version: v}
				for err := error(nil); string(r.Value) != "2"; {
					if r, err = s.Watch(t.Context(), "r", r.Version); err != nil {
						return err
					}
				}
				return nil
			})
			blocked(t, "Watch", watched)
			for _, step := range steps {
				step(t, filepath.Join(top, "r"))
				blocked(t, "Watch", watched)
			}
			_, err = s.Put(t.Context(), "r", []byte("2"), nil)
			check(t, err)
			check(t, within(t, "Watch", watched))
		})
	}
}

// TestWatchedFolderComesAndGoes says the same of one that others make and remove all the time.
func TestWatchedFolderComesAndGoes(t *testing.T) {
	top := coordtest.Folder(t)
	_, s := open(t, top)
	_, other := open(t, top)
	stop := make(chan struct{})
	done := begin(func() error {
		for {
			select {
			case <-stop:
				return nil
			default:
			}
			if _, err := other.Put(t.Context(), "r", nil, nil); err != nil {
				return err
			}
			if err := other.Delete(t.Context(), "r", nil); err != nil {
				return err
			}
		}
	})
	last := backend.Absent
	for range 1000 {
		var v backend.Version
		if err := within(t, "Watch", begin(func() (err error) {
			r, err := s.Watch(t.Context(), "r", last)
			v = r.Version
			return err
		})); err != nil {
			t.Fatal(err)
		}
		last = v
	}
	close(stop)
	if err := within(t, "the writer", done); err != nil {
		t.Error(err)
	}
}

// TestWhatIsHeard says that who waits in a folder is told, of the folder above, only what is removed there: who joins beside it wakes
// nobody.
func TestWhatIsHeard(t *testing.T) {
	top := t.TempDir()
	b, s := open(t, top)
	v, err := s.Put(t.Context(), "r", []byte("1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	watched := begin(func() error { _, err := s.Watch(t.Context(), "r", v); return err })
	blocked(t, "Watch", watched)
	if above, own := local.Heard(t, b, top), local.Heard(t, b, filepath.Join(top, "r")); above != unix.IN_DELETE || own&unix.IN_MOVED_TO == 0 {
		t.Errorf("it is told of %#x above, and of %#x in its own folder", above, own)
	}
	second := begin(func() error { _, err := s.Watch(t.Context(), "r2", backend.Absent); return err }) // its folder is to be made above
	blocked(t, "Watch", second)
	if above := local.Heard(t, b, top); above&unix.IN_CREATE == 0 {
		t.Errorf("it is told of %#x above", above)
	}
	if same := local.Adds(t, top); !slices.Equal(same, []bool{false, false, true, true}) {
		t.Errorf("it was watched so before: %v", same)
	}
	for i, name := range []string{"r", "r2"} {
		if _, err := s.Put(t.Context(), name, []byte("2"), nil); err != nil {
			t.Fatal(err)
		}
		if err := within(t, "Watch", []<-chan error{watched, second}[i]); err != nil {
			t.Error(err)
		}
	}
}

// TestOneWarning says that who looks again and again without inotify says so once.
func TestOneWarning(t *testing.T) {
	local.WithoutInotify(t)
	var log strings.Builder
	_, s := openWith(t, t.TempDir(), &local.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	ctx, cancel := context.WithCancel(t.Context())
	for range 3 {
		watched := begin(func() error { _, err := s.Watch(ctx, "r", backend.Absent); return err })
		blocked(t, "Watch", watched)
		cancel()
		if err := within(t, "Watch", watched); err == nil {
			t.Error("Watch has returned without an error")
		}
		ctx, cancel = context.WithCancel(t.Context())
	}
	cancel()
	if n := strings.Count(log.String(), "no inotify watch"); n != 1 {
		t.Errorf("the log says it %d times", n)
	}
}
