package conformance

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/internal/history"
)

// reportFolder returns the folder for the histories of a run in go test, or "" if there is
// none.
func reportFolder(t *testing.T, h Harness) string {
	if f := flag.Lookup("test.artifacts"); h.Report == "" && f != nil && f.Value.String() == "true" {
		// Go has the flag and the method since 1.26, but this module also builds with 1.25.
		return any(t).(interface{ ArtifactDir() string }).ArtifactDir()
	}
	return h.Report
}

// report adds the history of a trial to its result if the rule failed, and writes it to files
// if there is a folder for them.
func (h *Harness) report(res *Result, out engine.Outcome) {
	if len(out.History.Events) == 0 {
		return
	}
	failed := res.Status == Failed || res.Status == Waived
	var lines strings.Builder
	_ = out.History.Write(&lines) // a Builder returns no errors
	if failed {
		res.History = strings.Split(strings.TrimSuffix(lines.String(), "\n"), "\n")
	}
	dir, err := h.Report, error(nil)
	switch {
	case dir != "":
		err = os.MkdirAll(dir, 0o755)
	case res.Status == Failed && h.reportsFailures:
		dir, err = os.MkdirTemp("", "succession-conformance-")
	default:
		return
	}
	if err == nil {
		res.Files, err = h.save(dir, res, out, lines.String())
	}
	if err != nil { // the rule does not fail for that, but the report must show it
		res.Files = []string{"not written: " + err.Error()}
	}
}

// save writes a history and its picture into the folder, and returns the files.
func (h *Harness) save(dir string, res *Result, out engine.Outcome, lines string) ([]string, error) {
	files := []string{filepath.Join(dir, res.ID+".jsonl"), filepath.Join(dir, res.ID+".svg")}
	title := fmt.Sprintf("%s on %s: %s", res.ID, h.Name, res.Title)
	if res.Symptom != "" {
		symptom, _, _ := strings.Cut(res.Symptom, "\n")
		title = fmt.Sprintf("%s on %s %s: %s", res.ID, h.Name, res.Status, symptom)
	}
	broken := out.Broken
	if broken == nil && out.Failure != "" { // more may be wrong than what failed first
		broken = out.History.Check(history.Rules{Notice: h.coordinator().Soon()})
	}
	var picture strings.Builder
	err := out.History.SVG(&picture, title, broken)
	return files, errors.Join(err,
		os.WriteFile(files[0], []byte(lines), 0o644),
		os.WriteFile(files[1], []byte(picture.String()), 0o644))
}
