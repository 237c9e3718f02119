package main

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// lines are lines of files.
type lines map[string]map[int]bool

// changedSince returns the lines that are not as they were at a revision.
func changedSince(ctx context.Context, revision string) (lines, error) {
	cmd := exec.CommandContext(ctx, "git", "diff", "--relative", "--no-color", "--no-ext-diff", "--src-prefix=a/", "--dst-prefix=b/", "-U0", revision, "--", "*.go")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git diff %s: %w", revision, err)
	}
	return parseDiff(string(out))
}

func parseDiff(diff string) (lines, error) {
	changed := lines{}
	file := ""
	for line := range strings.Lines(diff) {
		if name, ok := strings.CutPrefix(line, "+++ "); ok {
			file = strings.TrimPrefix(strings.TrimSpace(name), "b/")
			continue
		}
		if !strings.HasPrefix(line, "@@ ") {
			continue
		}
		words := strings.Fields(line) // @@ -1,2 +3,4 @@
		if len(words) < 4 {
			return nil, fmt.Errorf("a diff with the line %q", line)
		}
		from, count, ok := strings.Cut(strings.TrimPrefix(words[2], "+"), ",")
		if !ok {
			count = "1"
		}
		first, err := strconv.Atoi(from)
		if err != nil {
			return nil, err
		}
		n, err := strconv.Atoi(count)
		if err != nil {
			return nil, err
		}
		for i := range n {
			if changed[file] == nil {
				changed[file] = map[int]bool{}
			}
			changed[file][first+i] = true
		}
	}
	return changed, nil
}
