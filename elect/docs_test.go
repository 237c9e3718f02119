package elect_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

const safety = "../docs/safety.md"

// The code in docs/safety.md is that of the examples, which run.
func TestSafetyShowsTheExamples(t *testing.T) {
	page, err := os.ReadFile(safety)
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_fencing_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, examples, ok := strings.Cut(string(source), "\n)\n\n") // the end of the imports
	if !ok {
		t.Fatal("the examples have no imports; has their form changed?")
	}
	var shown string
	for _, block := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		shown += block[1] + "\n"
	}
	if strings.TrimSpace(shown) != strings.TrimSpace(examples) {
		t.Errorf("the Go code of %s is not that of the examples; copy it from there:\n%s", safety, examples)
	}
}
