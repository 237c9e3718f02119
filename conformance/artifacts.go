package conformance

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/succession-dev/succession/internal/history"
)

// reportFolder returns the folder for the histories of a run in go test; "" for
// none.
func reportFolder(t *testing.T, h Harness) string {
	if f := flag.Lookup("test.artifacts"); h.Report == "" && f != nil && f.Value.String() == "true" {
		// Go has the flag and the method since 1.26, and this module can do with 1.25.
		return any(t).(interface{ ArtifactDir() string }).ArtifactDir()
	}
	return h.Report
}

// report puts the history of the trial into the result, as far as it is to be there,
// and into its files.
func (t *trial) report(res *Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.history
	if h == nil {
		h = t.notes.History()
	}
	if len(h.Events) == 0 {
		return
	}
	failed := res.Status == Failed || res.Status == Waived
	var lines strings.Builder
	_ = h.Write(&lines) // a Builder takes all
	if failed {
		res.History = strings.Split(strings.TrimSuffix(lines.String(), "\n"), "\n")
	}
	dir, err := t.h.Report, error(nil)
	switch {
	case dir != "":
		err = os.MkdirAll(dir, 0o755)
	case res.Status == Failed && t.h.reportsFailures:
		dir, err = os.MkdirTemp("", "succession-conformance-")
	default:
		return
	}
	if err == nil {
		res.Files, err = t.save(dir, h, lines.String(), t.title(res))
	}
	if err != nil { // a rule does not fail by that, but it must show
		res.Files = []string{"not written: " + err.Error()}
	}
}

// title is the head of a picture.
func (t *trial) title(res *Result) string {
	if res.Symptom == "" {
		return fmt.Sprintf("%s on %s: %s", res.ID, t.h.Name, res.Title)
	}
	symptom, _, _ := strings.Cut(res.Symptom, "\n")
	return fmt.Sprintf("%s on %s %s: %s", res.ID, t.h.Name, res.Status, symptom)
}

// save writes a history and its picture into the folder, and returns the files.
func (t *trial) save(dir string, h *history.History, lines, title string) ([]string, error) {
	files := []string{filepath.Join(dir, t.rule.ID+".jsonl"), filepath.Join(dir, t.rule.ID+".svg")}
	var picture strings.Builder
	broken := t.broken
	if broken == nil && t.failure != "" { // what failed first need not be all that is wrong
		broken = h.Check(history.Rules{Notice: t.h.soon()})
	}
	err := h.SVG(&picture, title, broken)
	return files, errors.Join(err,
		os.WriteFile(files[0], []byte(lines), 0o644),
		os.WriteFile(files[1], []byte(picture.String()), 0o644))
}
