package recipes_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// What the page says of each thing that the documents describe is there: the rules, and the examples.
func TestPageNamesRulesAndExamples(t *testing.T) {
	page, err := os.ReadFile("../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile("../conformance/RULES.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "## What ZooKeeper's documents describe")
	table, _, ended := strings.Cut(table, "\n## ")
	if !found || !ended {
		t.Fatal("the page has no such table")
	}
	rows := regexp.MustCompile(`(?m)^\| .* \|$`).FindAllString(table, -1)[1:]
	if len(rows) < 15 {
		t.Errorf("the table has %d rows", len(rows))
	}
	for _, row := range rows {
		cells := strings.Split(row, "|")
		named := regexp.MustCompile("`([A-Za-z]+\\.[a-z-]+)`").FindAllStringSubmatch(cells[4], -1)
		if len(named) == 0 {
			t.Errorf("no rule holds this: %s", row)
		}
		for _, rule := range named {
			if !strings.Contains(string(rules), "| "+rule[1]+" |") {
				t.Errorf("there is no rule %s", rule[1])
			}
		}
		examples := regexp.MustCompile("`(examples/[a-z]+)`|\\(\\.\\./([a-z/_.]+)\\)").FindAllStringSubmatch(cells[3], -1)
		if len(examples) == 0 {
			t.Errorf("no example does this: %s", row)
		}
		for _, example := range examples {
			if _, err := os.Stat("../" + example[1] + example[2]); err != nil {
				t.Error(err)
			}
		}
	}
}
