package target

import (
	"testing"

	_ "github.com/succession-dev/succession/consul"
	_ "github.com/succession-dev/succession/etcd"
	_ "github.com/succession-dev/succession/zookeeper"
)

func TestThroughProxies(t *testing.T) {
	const others = "the URL names several servers and no server-name that stands in the certificates of all"
	for _, tt := range []struct {
		url           string
		want          string // the URL through proxies at p1 and p2
		whyImpossible string
	}{
		{"zookeeper://h1:1,h2/app?ttl=2s", "zookeeper://p1,p2/app?ttl=2s", ""},
		{"zookeeper://h1", "zookeeper://p1", ""},
		{"etcd://h1?ttl=2s", "etcd://p1?ttl=2s", ""},
		{"etcd://h1/?tls=on", "etcd://p1/?tls=on&server-name=h1", ""},
		{"etcd://h1,h1:7/?ca-file=x", "etcd://p1,p2/?ca-file=x&server-name=h1", ""},
		{"etcd://h1,h2/?ca-file=x&server-name=etcd", "etcd://p1,p2/?ca-file=x&server-name=etcd", ""},
		{"etcd://h1,h2/?ca-file=x", "", others},
		{"consul:///app", "", "the URL names no server to put a proxy in front of"},
	} {
		t.Run(tt.url, func(t *testing.T) {
			target, err := newTarget(tt.url)
			if err != nil {
				t.Fatal(err)
			}
			if target.noProxy != tt.whyImpossible {
				t.Fatalf("not possible: %q, want %q", target.noProxy, tt.whyImpossible)
			}
			if tt.want == "" {
				return
			}
			if got := target.through([]string{"p1", "p2"}[:len(target.hosts)]); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// Clearing "" would clear everything.
func TestClearNothing(t *testing.T) {
	if err := new(Target).Clear(t.Context()); err != errNoPrefix {
		t.Errorf("%v, want %v", err, errNoPrefix)
	}
}
