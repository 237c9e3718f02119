package coordtest_test

import (
	"reflect"
	"testing"

	"github.com/succession-dev/succession/internal/rig/coordtest"
)

func TestParseWatches(t *testing.T) {
	const minus = "0xffffffffffffffff" // ids with the highest bit set are negative numbers in Java and in Go
	tests := []struct {
		name, text string
		want       coordtest.Watches
		bad        bool
	}{
		{name: "none", text: "\n", want: coordtest.Watches{}},
		{name: "two watchers", text: "/a\n\t0x10\n\t" + minus + "\n/a/b\n\t0x2\n\n", want: coordtest.Watches{"/a": {16, -1}, "/a/b": {2}}},
		{name: "no path", text: "\t0x10\n", bad: true},
		{name: "no id", text: "/a\n\tsomebody\n", bad: true},
		{name: "refused", text: "wchp is not executed because it is not in the whitelist.\n", bad: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := coordtest.ParseWatches(tt.text)
			if (err != nil) != tt.bad || !tt.bad && !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %v, %v; want %v, error %v", got, err, tt.want, tt.bad)
			}
		})
	}
}

func TestParseWatchSummary(t *testing.T) {
	got, err := coordtest.ParseWatchSummary("2 connections watching 3 paths\nTotal watches:4\n")
	if want := (coordtest.WatchSummary{Connections: 2, Paths: 3, Watches: 4}); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	for _, bad := range []string{"", "wchs is not executed", "99999999999999999999 connections watching 3 paths\nTotal watches:4"} {
		if got, err := coordtest.ParseWatchSummary(bad); err == nil {
			t.Errorf("%q was read as %+v", bad, got)
		}
	}
}

func TestParseMonitor(t *testing.T) {
	got, err := coordtest.ParseMonitor("zk_version\t3.8.0, built on\t2024\nzk_watch_count\t0\n")
	want := map[string]string{"zk_version": "3.8.0, built on\t2024", "zk_watch_count": "0"}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if got, err := coordtest.ParseMonitor("This ZooKeeper instance is not currently serving requests\n"); err == nil {
		t.Errorf("a refusal was read as %v", got)
	}
}
