package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"
)

// A history says how long programs took when they were last run and passed.
type history struct {
	took map[string]time.Duration // by the key of the program
	now  map[string]time.Duration // in this run
}

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
	h := history{took: make(map[string]time.Duration), now: make(map[string]time.Duration)}
	if b, err := os.ReadFile(file); err == nil {
		_ = json.Unmarshal(b, &h.took)
	}
	return h
}

// note keeps how long a program took for the next run. This one goes on by what it has read.
func (h *history) note(key string, took time.Duration) { h.now[key] = took }

// write adds what was noted to the file. Another run may write at the same time: the last one stays.
func (h *history) write(file string) error {
	if file == "" || len(h.now) == 0 {
		return nil
	}
	all := readHistory(file).took
	for key, took := range h.now {
		all[key] = took
	}
	b, err := json.Marshal(all)
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
