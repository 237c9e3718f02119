//go:build linux

package prometheus_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The rules are right for promtool, and each fires when it should.
func TestRules(t *testing.T) {
	promtool := program(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = filepath.Dir(rulesFile)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// Each alert is tried in both ways, and has a heading in docs/metrics.md, which its link names.
func TestEachAlertIsTriedAndDocumented(t *testing.T) {
	tests, docs := read(t, "../dashboards/alerts_test.yml"), read(t, "../../docs/metrics.md")
	rules := strings.Split(read(t, rulesFile), "- alert: ")[1:]
	for i, alert := range alerts(t) {
		fires := regexp.MustCompile(`alertname: ` + alert + `\n\s+exp_alerts:`)
		silent := regexp.MustCompile(`alertname: ` + alert + `}`)
		if !fires.MatchString(tests) || !silent.MatchString(tests) {
			t.Errorf("alerts_test.yml does not show that %s fires, and that it does not", alert)
		}
		if !strings.Contains(docs, "\n### "+alert+"\n") {
			t.Errorf("docs/metrics.md has no heading %s", alert)
		}
		if link := "docs/metrics.md#" + strings.ToLower(alert) + "\n"; !strings.Contains(rules[i], link) {
			t.Errorf("the link of %s does not end with %s", alert, link)
		}
	}
}

// alerts returns the names of all alerts, in order.
func alerts(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^\s+- alert: (\w+)$`).FindAllStringSubmatch(read(t, rulesFile), -1) {
		names = append(names, m[1])
	}
	if len(names) == 0 {
		t.Fatal("there are no alerts; has the form of the file changed?")
	}
	return names
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
