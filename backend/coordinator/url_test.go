package coordinator_test

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
)

func TestParseURL(t *testing.T) {
	tests := []struct {
		raw    string
		scheme string
		hosts  []string // with default port 2181
		path   string
	}{
		{"zookeeper://h1:2181,h2:2182/chroot", "zookeeper", []string{"h1:2181", "h2:2182"}, "/chroot"},
		{"zookeeper://h1,h2", "zookeeper", []string{"h1:2181", "h2:2181"}, ""},
		{"zookeeper://[::1]:1,[::2]:2/a/b", "zookeeper", []string{"[::1]:1", "[::2]:2"}, "/a/b"},
		{"zookeeper://[fe80::1]/", "zookeeper", []string{"[fe80::1]:2181"}, "/"},
		{"zookeeper://[fe80::1%25eth0],[fe80::2%eth0]:1", "zookeeper", []string{"[fe80::1%eth0]:2181", "[fe80::2%eth0]:1"}, ""},
		{"zookeeper://h1:2181/a%20b", "zookeeper", []string{"h1:2181"}, "/a b"},
		{"local:/var/lib/app", "local", nil, "/var/lib/app"},
		{"local:", "local", nil, ""},
		{"local:/~/x", "local", nil, "/~/x"},
		{"local:///var/lib/app", "local", nil, "/var/lib/app"},
		{"memory:name?ttl=10s", "memory", nil, "name"},
		{"migrate:?from=a:b&to=c:d", "migrate", nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.raw, func(t *testing.T) {
			u, err := coordinator.ParseURL(tt.raw)
			if err != nil {
				t.Fatal(err)
			}
			hosts := u.HostPorts("2181")
			if u.Scheme != tt.scheme || u.Path != tt.path || !slices.Equal(hosts, tt.hosts) {
				t.Errorf("got scheme %q, hosts %q, path %q; want %q, %q, %q",
					u.Scheme, hosts, u.Path, tt.scheme, tt.hosts, tt.path)
			}
		})
	}
}

func TestParseURLRefuses(t *testing.T) {
	tests := []struct{ raw, says string }{
		{"", "it is empty"},
		{"10.0.0.1:2181,10.0.0.2:2181", "a scheme is made of"},
		{"ZooKeeper://h1", "lower-case"},
		{"://h1", "want scheme"},
		{"zookeeper://user:hunter2@h1:2181", "user name or password"},
		{"zookeeper://h1:port", "port"},
		{"zookeeper://h1:0", "port"},
		{"zookeeper://h1:70000", "port"},
		{"zookeeper://::1:2181", "brackets"},
		{"zookeeper://h%25eth0:2181", "character"},
		{"zookeeper://[fe80::1%25]:2181", "not an IPv6 address"},
		{"zookeeper://[127.0.0.1]:2181", "not an IPv6 address"},
		{"zookeeper://[::1:2181", "bracket"},
		{"zookeeper://[h1]:2181", "IPv6"},
		{"zookeeper://h1,,h2", "host 2: it is empty"},
		{"zookeeper://:2181", "empty"},
		{"zookeeper://h 1", "character"},
		{"zookeeper://h1/#x", "fragment"},
		{"zookeeper://h1/%zz", "path"},
		{"etcd://h1/app&password=hunter2", "begin with ?"},
		{"etcd://h1/app;ttl=3s", "begin with ?"},
		{"etcd://h1,password=hunter2", "begin with ?"},
		{"consul:u:hunter2@h1", "user name or password"},
		{"zookeeper://h1/?a=%zz", "parameters"},
		{"local:~/x", "home folder"},
		{"local:~root/x", "home folder"},
		{"local:%7E/x", "home folder"},
		{"etcd://h1/?ca-file=~/ca.pem", `"ca-file": ~ is nobody`},
	}
	for _, tt := range tests {
		t.Run(tt.raw, func(t *testing.T) {
			_, err := coordinator.ParseURL(tt.raw)
			if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("got error %v; want ErrInvalid that says %q", err, tt.says)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows a password: %v", err)
			}
		})
	}
}

func TestRedact(t *testing.T) {
	const unreadable = "(a URL that cannot be read)"
	tests := []struct{ raw, want string }{
		{"etcd://h1:2379/app?ttl=10s", "etcd://h1:2379/app?ttl=10s"},
		{"etcd://user:hunter2@h1:2379/app", unreadable},
		{"etcd://h1?password=hunter2&ttl=10s", "etcd://h1?password=redacted&ttl=10s"},
		{"etcd://h1?password-file=/run/pw&token-env=TOKEN", "etcd://h1?password-file=/run/pw&token-env=TOKEN"},
		{"etcd:/u:hunter2@h1", unreadable},
		{"local:/srv/hunter2@h1", "local:/redacted@h1"},
		{"local:/srv/a%26b%3Bc%3Dd", "local:/srv/a%26b%3Bc%3Dd"},
		{"u:hunter2@h1:2379/app", "u:redacted@h1:2379/app"},
		{"etcd://h1/hunter2%40app", "etcd://h1/redacted%40app"},
		{"spread:?to=eu=etcd://h1:2379&to=us=etcd://u:hunter2@h2", "spread:?to=eu%3Detcd://h1:2379&to=redacted"},
		{"etcd://h1?pwd=hunter2&pw=hunter2&digest=u:hunter2", "etcd://h1?digest=redacted&pw=redacted&pwd=redacted"},
		{"consul://h1?to%6ben=hunter2", "consul://h1?token=redacted"},
		{"migrate:?from=etcd://u:hunter2@h1", "migrate:?from=redacted"},
		{"hunter2@", unreadable},
	}
	for _, tt := range tests {
		if got := coordinator.Redact(tt.raw); got != tt.want {
			t.Errorf("Redact(%q) = %q, want %q", tt.raw, got, tt.want)
		}
		if u, err := coordinator.ParseURL(tt.raw); err == nil && strings.Contains(u.String(), "hunter2") {
			t.Errorf("ParseURL(%q) prints a secret: %s", tt.raw, u)
		}
	}
}

func TestParams(t *testing.T) {
	tests := []struct{ query, says string }{
		{"", ""},
		{"?session=3s&prefix=n_", ""},
		{"?session=3", "not a duration"},
		{"?session=-3s", "not a duration"},
		{"?sesion=3s", `unknown parameter "sesion"; known are fast, prefix, session, to`},
		{"?prefix=a&prefix=b", "given 2 times"},
		{"?fast=true", ""},
		{"?fast=yes", "neither true nor false"},
		{"?to=a&to=b", ""},
	}
	for _, tt := range tests {
		u, err := coordinator.ParseURL("x://h" + tt.query)
		if err != nil {
			t.Fatal(err)
		}
		u.Duration("session", time.Second)
		u.Text("prefix", "")
		if fast := u.Bool("fast"); fast != (tt.query == "?fast=true") {
			t.Errorf("%s: fast is %t", tt.query, fast)
		}
		if to := u.Texts("to"); len(to) != strings.Count(tt.query, "to=") || len(to) == 2 && (to[0] != "a" || to[1] != "b") {
			t.Errorf("%s: to is %q", tt.query, to)
		}
		err = u.Err()
		if tt.says == "" && err != nil {
			t.Errorf("%s: %v", tt.query, err)
		}
		if tt.says != "" && (!errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%s: got error %v; want ErrInvalid that says %q", tt.query, err, tt.says)
		}
	}
}

func TestMux(t *testing.T) {
	var m coordinator.Mux
	if _, err := m.Open("x:"); err == nil || !strings.Contains(err.Error(), "no driver is registered") {
		t.Errorf("an empty mux: %v", err)
	}
	want := errors.New("opened")
	open := func(u *coordinator.URL) (backend.Backend, error) { return nil, want }
	m.Handle(coordinator.Driver{Scheme: "x", Open: open})
	m.Handle(coordinator.Driver{Scheme: "a", Open: open, Title: "A"})
	if _, err := m.Open("x:path"); err != want {
		t.Errorf("Open of a registered scheme: %v", err)
	}
	_, err := m.Open("zk://h?password=hunter2")
	if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), "known are a, x") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("Open of an unknown scheme: %v", err)
	}
	for _, d := range []coordinator.Driver{{Scheme: "x", Open: open}, {Scheme: "b"}, {Open: open}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("registered: %+v", d)
				}
			}()
			m.Handle(d)
		}()
	}
	var titles []string
	for _, d := range m.Drivers() {
		titles = append(titles, d.Title)
	}
	if !slices.Equal(titles, []string{"A", "x"}) {
		t.Errorf("the titles are %q", titles)
	}
	u, err := coordinator.ParseURL("a:")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Operator(u); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "the driver of A ") {
		t.Errorf("the operator of a driver without one: %v", err)
	}
}

// places are where somebody may have put a password.
var places = []string{
	"etcd://u:%s@h1:2379/app", "etcd://%s@h1:2379", "etcd:/u:%s@h1", "etcd:u:%s@h1", "u:%s@h1:2379/app", "://u:%s@h1", "u:%s@",
	"etcd://h1,u:%s@h2", "etcd://h1/u:%s@x", "etcd://u:%s@h1?ttl=1s", "etcd://u:%s", "etcd://[u:%s@h1", "etcd://u:%s:x@h1/%%zz",
	"etcd://h1#password=%s", "etcd://h1?x=1;password=%s", "etcd://h1?password=%s", "etcd://h1?pwd=%s", "etcd://h1?pw=%s", "etcd://h1?digest=u:%s",
	"etcd://h1?digest=%s&a=%%zz", "etcd://h1?PassWord=%s&ttl=x", "etcd://h1?ttl=1s&u:%s@h1", "etcd://h1?x=u:%s@h",
	"migrate:?from=etcd://u:%s@h1", "migrate:?from=etcd://h1?pw=%s", "spread:?to=eu=etcd://u:%s@h1",
	"etcd://h1/app&password=%s", "etcd://h1/app;password=%s", "etcd://h1,password=%s", "consul:%s@h1", "consul:/u:%s@h1",
	// Only the driver knows that these are no parameters of its own.
	"etcd://h1?unknown=%s", "etcd://h1?unknown=%s&ttl=x", "nowhere://h1?a=%s",
}

const known = 3 // how many at the end of places only the driver knows

// checkNoPassword has the URL read as a driver and the command do, and looks for the password in what is printed.
func checkNoPassword(t *testing.T, i int, password string) {
	t.Helper()
	place := places[i]
	raw := fmt.Sprintf(place, password)
	var m coordinator.Mux
	for _, scheme := range []string{"etcd", "migrate", "spread"} {
		m.Handle(coordinator.Driver{Scheme: scheme, Open: func(u *coordinator.URL) (backend.Backend, error) {
			u.Duration("ttl", 0)
			if err := u.Err(); err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("%s: no answer", u)
		}})
	}
	m.Handle(coordinator.Driver{Scheme: "consul", Open: func(u *coordinator.URL) (backend.Backend, error) {
		return nil, backend.CheckName(strings.Trim(u.Path, "/")) // its prefix
	}})
	_, err := m.Open(raw)
	says := []string{fmt.Sprint(err)}
	if i < len(places)-known {
		says = append(says, coordinator.Redact(raw))
	}
	for _, said := range says {
		plain, _ := url.QueryUnescape(said)
		if strings.Contains(said, password) || strings.Contains(plain, password) {
			t.Errorf("%s shows the password %q: %s", raw, password, said)
		}
	}
}

// A password does not appear in what is said of the URL, wherever it stands in it.
func TestNoPasswordIsPrinted(t *testing.T) {
	for i := range places {
		for _, password := range []string{"hunter2", "hun/ter2", "hun?ter2", "hun#ter2", "hun@ter2", "hun:ter2", "hun&ter2", "hun;ter2", "hun=ter2", "hun%zzter2", "hun%40ter2", "hun ter2"} {
			checkNoPassword(t, i, password)
		}
	}
}

// FuzzPassword looks for a password that is printed.
func FuzzPassword(f *testing.F) {
	for i := range places {
		f.Add(i, "hunter2")
	}
	f.Fuzz(func(t *testing.T, i int, password string) {
		// What is short, or a part of the rest, is found there.
		if i < 0 || i >= len(places) || len(password) < 6 || strings.Contains(strings.ReplaceAll(places[i], "%s", ""), password) ||
			strings.ContainsFunc(password, func(r rune) bool { return r < ' ' || r > '~' }) {
			return
		}
		checkNoPassword(t, i, "PW-"+password)
	})
}

// FuzzParseURL looks for input that is taken and then cannot be printed and read
// again, or that panics.
func FuzzParseURL(f *testing.F) {
	for _, s := range []string{"a://0/%40", "a:////%40", "zookeeper://h1:2181,[::1]:2/p?a=b", "local:/x", "a://u:p@h", "a:?b=%41&b", "x://[::1", "x:a@b?c@d=e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		coordinator.Redact(s)
		u, err := coordinator.ParseURL(s)
		if err != nil {
			return
		}
		for _, h := range u.HostPorts("1") {
			if !strings.Contains(h, ":") {
				t.Errorf("%q: host %q has no port", s, h)
			}
		}
		again, err := coordinator.ParseURL(u.String())
		if err != nil {
			t.Fatalf("%q prints as %q, which is refused: %v", s, u, err)
		}
		if again.String() != u.String() {
			t.Errorf("%q prints as %q, and that as %q", s, u, again)
		}
	})
}
