package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestTimes(t *testing.T) {
	var times times
	end := func(pkg, test string, seconds float64) {
		times.add(event{Package: pkg, Test: test, Elapsed: seconds})
	}
	end("p", "TestA/b", 2)
	end("p", "TestA", 9) // its subtest took the time
	end("p", "TestC", 0.5)
	end("p", "", 9.5)
	for i := range 12 {
		end("q", fmt.Sprint("TestD", i), float64(10+i))
	}
	end("q", "", 300)
	end("q", "", 60) // a second run
	times.used("q", 10)
	times.used("q", 2.5)
	end("r", "", 0.2)
	var out bytes.Buffer
	times.before = map[string]time.Duration{"q TestD11": 2500 * time.Millisecond}
	times.print(&out)
	want := `
== time of each package, and of the processors
  360.0s    12.5s  q
    9.5s  p
            12.5s  in all

== the slowest tests
`
	want += "   21.0s  q TestD11 (the last time 2.5s)\n"
	for i := 10; i >= 2; i-- {
		want += fmt.Sprintf("%7.1fs  q TestD%d\n", float64(10+i), i)
	}
	if got := out.String(); strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var short bytes.Buffer
	times.tests = times.tests[:0]
	end("p", "TestA/b", 2)
	end("p", "TestA", 9)
	times.print(&short)
	if s := short.String(); !strings.Contains(s, "TestA/b") || strings.Contains(s, "TestA\n") {
		t.Errorf("a test with subtests is shown, or a subtest is not:\n%s", s)
	}
}
