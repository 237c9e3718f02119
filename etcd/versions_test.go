package etcd

import (
	"os"
	"strings"
	"testing"
)

// Which versions are old is read of each as etcd writes it, and the pages say the same.
func TestReleases(t *testing.T) {
	for version, want := range map[string]bool{
		"3.4.30": false, "3.5.9": false, "3.5.32": false, "3.5.33": true, "3.5.100": true, "3.6.0": false, "3.6.13": false, "3.6.14": true,
		"3.7.0": false, "3.7.1": true, "3.7.1-rc.0": false, "3.7.2-alpha.1": true, "3.8.0": true, "3.8.0-rc.1": true, "4.0.0": true, "2.3.8": false,
		"": true, "unknown": true, "3.6": true,
	} {
		if got := strict.have(version); got != want {
			t.Errorf("%q keeps to rights: %t", version, got)
		}
	}
	for page, want := range map[string]string{
		"../docs/etcd.md":          "With authentication, use etcd " + strict.String() + " or later.",
		"../README.md":             sound.String() + " or later; with authentication " + strict.String() + " or later",
		"../docs/compatibility.md": sound.String() + " or later; with authentication " + strict.String() + " or later",
	} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s does not say: %s", page, want)
		}
	}
}
