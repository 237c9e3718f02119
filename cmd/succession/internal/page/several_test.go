package page

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/succession-dev/succession/etcd"
	_ "github.com/succession-dev/succession/local"
)

// What is on the command line counts before the environment, and names before none.
func TestSeveral(t *testing.T) {
	list := filepath.Join(t.TempDir(), "clusters.json")
	if err := os.WriteFile(list, []byte(`[{"name":"east","url":"local:/e"},{"name":"west","url":"local:/w?ttl=3s"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flags       []string
		environment string
		url         string // "" is the default, or that of the environment
		want        []named
		says        string
	}{
		{nil, "", "", nil, ""},
		{nil, "", "local:/x", nil, ""},
		{[]string{"a=local:/a", "b=local:/b?ttl=3s"}, "", "", []named{{"a", "local:/a"}, {"b", "local:/b?ttl=3s"}}, ""},
		{[]string{"local:/a?ttl=3s", "etcd://h1/app"}, "", "", []named{{"local", "local:/a?ttl=3s"}, {"etcd", "etcd://h1/app"}}, ""},
		{[]string{"a=local:/a"}, "b=local:/b", "", []named{{"a", "local:/a"}}, ""},
		{nil, " b=local:/b\n c=local:/c ", "", []named{{"b", "local:/b"}, {"c", "local:/c"}}, ""},
		{nil, "b=local:/b", "local:/x", nil, ""},
		{[]string{"a=local:/a"}, "", "local:/x", nil, "give all with --coordinator"},
		{nil, "", "spread:" + list, []named{{"east", "local:/e"}, {"west", "local:/w?ttl=3s"}}, ""},
		{[]string{"spread:" + list, "a=local:/a"}, "", "", []named{{"east", "local:/e"}, {"west", "local:/w?ttl=3s"}, {"a", "local:/a"}}, ""},
		{nil, "", "spread:?to=east=local:/e&to=west=local:/w", []named{{"east", "local:/e"}, {"west", "local:/w"}}, ""},
		{[]string{"spread:" + list, "east=local:/a"}, "", "", nil, "two coordinators are called east"},
		{[]string{"a=spread:" + list}, "", "", nil, "have names of their own"},
		{nil, "", "spread:" + list + "-not", nil, "the list of clusters cannot be read"},
		{[]string{"local:/a", "local:/b"}, "", "", nil, "two coordinators are called local; give each a name, as in --coordinator payments=local:/b"},
		{[]string{"a=local:/a", "b=local:/a"}, "", "", nil, "a and b have the same URL, local:/a"},
		{[]string{"a=local:/a", "word@h1/app?x=y"}, "", "", nil, "coordinator 2: invalid URL"}, // it may be a part of a password
		{[]string{"../a=local:/a"}, "", "", nil, `name "../a" of a coordinator`},
		{[]string{"files=local:/a"}, "", "", nil, "that is a path of the overview"},
		{[]string{"=local:/a"}, "", "", nil, `name "" of a coordinator`},
		{[]string{"a\u202eb=local:/a"}, "", "", nil, "use letters, digits"},
	} {
		t.Setenv(coordinatorsVariable, c.environment)
		got, err := several(t.Context(), c.flags, c.url, c.url != "")
		if c.says == "" && (err != nil || !slices.Equal(got, c.want)) || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%q, with %q in the environment and --url %q: %v, %v; want %v%s", c.flags, c.environment, c.url, got, err, c.want, c.says)
		}
		if err != nil && strings.Contains(err.Error(), "word@") {
			t.Errorf("the error shows what may be secret: %v", err)
		}
	}
}

// Elections are shown on the page of the coordinator that they are named with. What cannot be opened is said before anything is served.
func TestOpen(t *testing.T) {
	all := []named{{"a", "local:" + t.TempDir()}, {"b", "etcd://127.0.0.1:1/app?user=me&password-file=" + os.DevNull + "-not"}}
	never := func([]Coordinator) error { t.Error("it was opened"); return nil }
	if err := open(all, nil, never); err == nil || !strings.Contains(err.Error(), "b: ") {
		t.Errorf("with a file that is not there: %v", err)
	}
	all[1].url = "etcd://127.0.0.1:1/app"
	for _, name := range []string{"reports", "c:reports", "a:", "a:/x", "a:x:y", ":x"} {
		if err := open(all, []string{name}, never); err == nil {
			t.Errorf("%q is taken for an election", name)
		}
	}
	err := open(all, []string{"a:reports", "b:reports/monthly", "a:mails"}, func(opened []Coordinator) error {
		if len(opened) != 2 || !slices.Equal(opened[0].Names, []string{"reports", "mails"}) || !slices.Equal(opened[1].Names, []string{"reports/monthly"}) {
			t.Errorf("opened were %+v", opened)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Whatever is given as coordinators, each page has a path of its own, which needs no escapes.
func FuzzCoordinators(f *testing.F) {
	for _, s := range []string{"a=local:/a b=local:/b", "local:/a etcd://h", "..=local:/a", "a/b=local:/x", "a=b=local:/x", "=", ":=", "a:b=local:/x", "healthz=local:/x", "a%2f=local:/x", "a\u202e=local:/x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "spread:") { // which reads a file
			return
		}
		_, err := several(t.Context(), strings.Fields(text), "", true)
		if err == nil && len(strings.Fields(text)) > 0 {
			t.Fatal("both --url and --coordinator are taken")
		}
		all, err := several(t.Context(), strings.Fields(text), "", false)
		if err != nil {
			return
		}
		seen := make(map[string]bool)
		for _, c := range all {
			if c.name == "" || c.name == "." || c.name == ".." || seen[c.name] || strings.Trim(c.name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != "" {
				t.Errorf("%q has a coordinator called %q", text, c.name)
			}
			seen[c.name] = true
			if !strings.Contains(text, c.url) {
				t.Errorf("%q has a coordinator at %q", text, c.url)
			}
		}
	})
}
