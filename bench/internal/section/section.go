// Package section replaces a part of a text that a program writes: that between the lines
// "<!-- name -->" and "<!-- /name -->".
package section

import (
	"fmt"
	"os"
	"strings"

	"github.com/succession-dev/succession/bench/internal/program"
)

// Write replaces the section of a file. The file stays as it is where it has not exactly one section
// of that name.
func Write(path, name, section string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := replaced(string(b), name, section)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return program.WriteFile(path, []byte(text))
}

// replaced returns the text with another section.
func replaced(text, name, section string) (string, error) {
	begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->\n"
	before, rest, begins := strings.Cut(text, begin)
	_, after, ends := strings.Cut(rest, end)
	if !begins || !ends || strings.Contains(after, begin) {
		return "", fmt.Errorf("needs exactly one section between the lines %s and %s", begin[:len(begin)-1], end[:len(end)-1])
	}
	return before + begin + section + end + after, nil
}
