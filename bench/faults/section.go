package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// The section of a text that this program writes is between these two lines.
const (
	sectionBegin = "<!-- table -->\n"
	sectionEnd   = "<!-- /table -->\n"
)

// into replaces the section of a file.
func into(path, section string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := replaced(string(b), section)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// replaced returns the text with another section.
func replaced(text, section string) (string, error) {
	before, rest, begins := strings.Cut(text, sectionBegin)
	_, after, ends := strings.Cut(rest, sectionEnd)
	if !begins || !ends || strings.Contains(after, sectionBegin) {
		return "", errors.New("needs exactly one section between the lines <!-- table --> and <!-- /table -->")
	}
	return before + sectionBegin + section + sectionEnd + after, nil
}
