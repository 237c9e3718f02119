package candidate

import (
	"runtime"
	"strings"
	"testing"
)

// Kubernetes is left out where its server has not been built, and only if nobody asks for it.
func TestChoose(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the cache of built servers can be made empty on Linux only")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("PATH", t.TempDir())
	there, optional := 0, 0
	for _, l := range Libraries {
		if l.Coordinator == Kubernetes {
			there++
		}
		if Optional(l.Coordinator) {
			optional++
		}
	}
	for which, want := range map[string]struct {
		n    int
		says string
	}{
		"":                 {len(Libraries) - optional, "cmd/servers kube-apiserver\nRedis: left out"},
		"kubernetes":       {there, ""},
		"^etcd: concurren": {2, ""},
		"nobody":           {0, ""},
	} {
		var said strings.Builder
		chosen, err := Choose(which, &said)
		if err != nil || len(chosen) != want.n {
			t.Errorf("%q chooses %d libraries, want %d: %v", which, len(chosen), want.n, err)
		}
		if (want.says == "") != (said.Len() == 0) || !strings.Contains(said.String(), want.says) {
			t.Errorf("%q says %q, want %q", which, said.String(), want.says)
		}
	}
	if _, err := Choose("(", t.Output()); err == nil || !strings.Contains(err.Error(), "-library") {
		t.Errorf("a bad expression: %v; want an error that names the flag", err)
	}
}
