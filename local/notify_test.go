//go:build linux

package local_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// TestWatchedFolder says that who watches a record hears of it whatever has become of its folder meanwhile: it was cleared
// while somebody else had it open, or moved, and moved back.
func TestWatchedFolder(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, dir string){
		"cleared": func(t *testing.T, dir string) {
			held, err := os.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { held.Close() })
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		},
		"moved and moved back": func(t *testing.T, dir string) {
			for _, move := range [][2]string{{dir, dir + "2"}, {dir + "2", dir}} {
				if err := os.Rename(move[0], move[1]); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			_, s := open(t, top)
			v, err := s.Put(t.Context(), "r", []byte("1"), nil)
			if err != nil {
				t.Fatal(err)
			}
			watched := begin(func() error { _, err := s.Watch(t.Context(), "r", v); return err })
			blocked(t, "Watch", watched)
			change(t, filepath.Join(top, "r"))
			if r, err := s.Get(t.Context(), "r"); err != nil {
				t.Fatal(err)
			} else if r.Version == backend.Absent {
				if err := within(t, "Watch", watched); err != nil {
					t.Fatal(err)
				}
				watched = begin(func() error { _, err := s.Watch(t.Context(), "r", backend.Absent); return err })
			}
			blocked(t, "Watch", watched)
			if _, err := s.Put(t.Context(), "r", []byte("2"), nil); err != nil {
				t.Fatal(err)
			}
			if err := within(t, "Watch", watched); err != nil {
				t.Error(err)
			}
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
