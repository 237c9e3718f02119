//go:build linux

package local_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
)

func TestRecords(t *testing.T) {
	_, s := open(t, t.TempDir())
	ctx := t.Context()
	m := join(t, s, "e", "")
	put := func(cond *backend.If, want error) backend.Version {
		t.Helper()
		v, err := s.Put(ctx, "dir/r", []byte{0, 255}, cond)
		if !errors.Is(err, want) {
			t.Fatalf("Put if %+v: %v, want %v", cond, err, want)
		}
		return v
	}
	if r, err := s.Get(ctx, "dir/r"); err != nil || r.Version != backend.Absent {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := s.Delete(ctx, "dir/r", nil); err != nil {
		t.Errorf("Delete of no record: %v", err)
	}
	if err := s.Delete(ctx, "dir/r", &backend.If{Version: 3}); !errors.Is(err, backend.ErrVersion) {
		t.Errorf("Delete of no record's version: %v", err)
	}
	v1 := put(&backend.If{Version: backend.Absent}, nil)
	put(&backend.If{Version: backend.Absent}, backend.ErrVersion)
	put(&backend.If{Version: v1 - 1}, backend.ErrVersion)
	v2 := put(&backend.If{Version: v1, Member: m}, nil)
	if r, err := s.Get(ctx, "dir/r"); err != nil || r.Version != v2 || string(r.Value) != "\x00\xff" || r.Name != "dir/r" {
		t.Errorf("Get: %+v, %v", r, err)
	}
	leave(t, s, m)
	put(&backend.If{Member: m}, backend.ErrNotMember)
	if err := s.Delete(ctx, "dir/r", &backend.If{Member: m}); !errors.Is(err, backend.ErrNotMember) {
		t.Errorf("Delete if a member that left: %v", err)
	}
	if names, err := s.List(ctx, "dir"); err != nil || !slices.Equal(names, []string{"dir/r"}) {
		t.Errorf("List: %q, %v", names, err)
	}
	if err := s.Delete(ctx, "dir/r", &backend.If{Version: v2}); err != nil {
		t.Fatal(err)
	}
	if names, err := s.List(ctx, "dir"); err != nil || len(names) != 0 {
		t.Errorf("List: %q, %v", names, err)
	}
	v3 := put(nil, nil)
	if v1 >= v2 || v2 >= v3 {
		t.Errorf("versions %d, %d, %d do not grow", v1, v2, v3)
	}
	if _, err := s.Put(ctx, "big", make([]byte, backend.MaxRecord+1), nil); !errors.Is(err, backend.ErrInvalid) {
		t.Errorf("a record that is too long: %v", err)
	}
	if _, err := s.Put(ctx, "big", make([]byte, backend.MaxRecord), nil); err != nil {
		t.Errorf("the longest record: %v", err)
	}
}

// TestDeleteLeavesNothing says that records which come and go do not fill the
// folder.
func TestDeleteLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	_, s := open(t, dir)
	for i := range 20 {
		name := fmt.Sprintf("q/items/%d", i)
		if _, err := s.Put(t.Context(), name, nil, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(t.Context(), name, nil); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "@counter" && e.Name() != "@next" && e.Name() != "@lock" {
			t.Errorf("%s is left", e.Name())
		}
	}
}

// TestReadsBesideRemovals says that no read fails because a folder is removed while it is read.
func TestReadsBesideRemovals(t *testing.T) {
	top := t.TempDir()
	_, s := open(t, top)
	_, other := open(t, top)
	ctx := t.Context()
	done := make(chan struct{})
	reads := make(map[string]<-chan error)
	for name, read := range map[string]func() error{
		"Get":     func() error { _, err := other.Get(ctx, "dir/sub/r"); return err },
		"List":    func() error { _, err := other.List(ctx, "dir/sub"); return err },
		"ReadAll": func() error { _, err := other.ReadAll(ctx, "dir"); return err },
		"Line":    func() error { _, err := other.Line(ctx, "dir/sub/r"); return err },
		"Lines":   func() error { _, err := other.Lines(ctx); return err },
		"Survey":  func() error { _, err := other.Survey(ctx); return err },
	} {
		reads[name] = begin(func() error {
			for {
				select {
				case <-done:
					return nil
				default:
				}
				if err := read(); err != nil {
					return err
				}
			}
		})
	}
	for range 100 {
		if _, err := s.Put(ctx, "dir/sub/r", nil, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(ctx, "dir/sub/r", nil); err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	for name, read := range reads {
		if err := within(t, name, read); err != nil {
			t.Error(err)
		}
	}
}

func TestWatch(t *testing.T) {
	dir := t.TempDir()
	_, s := open(t, dir)
	_, other := open(t, dir)
	ctx := t.Context()
	at := backend.Absent
	next := func(change func()) backend.Record {
		t.Helper()
		var r backend.Record
		done := begin(func() (err error) { r, err = s.Watch(ctx, "a/b", at); return err })
		blocked(t, "Watch of the present version", done)
		change()
		if err := within(t, "Watch", done); err != nil {
			t.Fatal(err)
		}
		at = r.Version
		return r
	}
	put := func(v string) func() {
		return func() {
			if _, err := other.Put(ctx, "a/b", []byte(v), nil); err != nil {
				t.Error(err)
			}
		}
	}
	if r := next(put("1")); string(r.Value) != "1" {
		t.Errorf("%+v", r)
	}
	if r := next(put("2")); string(r.Value) != "2" {
		t.Errorf("%+v", r)
	}
	if r := next(func() {
		if err := other.Delete(ctx, "a/b", nil); err != nil {
			t.Error(err)
		}
	}); r.Version != backend.Absent {
		t.Errorf("%+v", r)
	}
	if r := next(put("3")); string(r.Value) != "3" {
		t.Errorf("%+v", r)
	}
	if r := next(func() {
		if err := os.RemoveAll(filepath.Join(dir, "a")); err != nil {
			t.Error(err)
		}
	}); r.Version != backend.Absent {
		t.Errorf("after the folder was removed: %+v", r)
	}
	if r := next(func() {
		// The folder is made, removed and made again: the one that is watched may be the
		// one that was removed.
		put("x")()
		if err := other.Delete(ctx, "a/b", nil); err != nil {
			t.Error(err)
		}
		time.Sleep(20 * time.Millisecond) // let the watch meet an absent folder, or not
		put("4")()
	}); string(r.Value) != "4" && string(r.Value) != "x" {
		t.Errorf("%+v", r)
	}
}
