package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"time"
)

// A history says how long programs took when they were last run and passed, and tests that took a second or more.
type history struct {
	took  map[string]time.Duration // by the key of the program
	tests map[string]time.Duration // by package and name
	now   map[string]time.Duration // as took, in this run
}

// A stored is what the file has.
type stored struct{ Programs, Tests map[string]time.Duration }

// historyFile is where the history is kept between runs, for all clones. It is empty where there
// is no such place.
func historyFile() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "succession", "test-times.json")
}

// readHistory reads the file. Without it, or where it is damaged, nothing is known.
func readHistory(file string) history {
	known := stored{make(map[string]time.Duration), make(map[string]time.Duration)}
	if b, err := os.ReadFile(file); err == nil {
		_ = json.Unmarshal(b, &known)
	}
	return history{took: known.Programs, tests: known.Tests, now: make(map[string]time.Duration)}
}

// note keeps how long a program took for the next run. This one goes on by what it has read.
func (h *history) note(key string, took time.Duration) { h.now[key] = took }

// write adds to the file what was noted, and how long tests took. Another run may write at the same time: the last one stays.
func (h *history) write(file string, tests []timed) error {
	if file == "" || len(h.now) == 0 {
		return nil
	}
	all := readHistory(file)
	maps.Copy(all.took, h.now)
	for _, t := range tests {
		if t.seconds >= 1 {
			all.tests[t.name] = time.Duration(t.seconds * float64(time.Second))
		}
	}
	b, err := json.Marshal(stored{all.took, all.tests})
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o755)
	}
	if err != nil {
		return err
	}
	part, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(part.Name()) // which fails once it is renamed
	_, err = part.Write(b)
	if closeErr := part.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(part.Name(), file)
	}
	return err
}
