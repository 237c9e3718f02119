package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// readEquivalent reads the list of mutants that do what the program does: names, each in a line, and
// below them, indented, the reason.
func readEquivalent(file string) (map[string]string, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	reasons := map[string]string{}
	var names []string
	reason := ""
	end := func() error {
		if len(names) > 0 && reason == "" {
			return fmt.Errorf("%s: no reason is given for %s", file, names[0])
		}
		for _, n := range names {
			reasons[n] = reason
		}
		names, reason = nil, ""
		return nil
	}
	for line := range strings.Lines(string(text)) {
		switch trimmed := strings.TrimSpace(line); {
		case trimmed == "" || strings.HasPrefix(line, "#"):
		case line[0] == ' ' || line[0] == '\t':
			reason = strings.TrimSpace(reason + " " + trimmed)
		default:
			if reason != "" {
				if err := end(); err != nil {
					return nil, err
				}
			}
			if _, twice := reasons[trimmed]; twice || slices.Contains(names, trimmed) {
				return nil, fmt.Errorf("%s: twice: %s", file, trimmed)
			}
			names = append(names, trimmed)
		}
	}
	return reasons, end()
}

// stale returns what the list names and no file has any more, of the files that were looked
// through.
func stale(equivalent map[string]string, seen map[string]bool, files map[string]bool) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(equivalent)) {
		file, _, _ := strings.Cut(name, " ")
		if files[file] && !seen[name] {
			names = append(names, name)
		}
	}
	return names
}
