//go:build linux

// Package drift builds programs whose clock runs fast or slow. The clock of a real machine cannot be made to do so for one process
// alone, and a Go program reads it past the C library. So the program is compiled with another nanotime in Go's runtime, from which
// package time has its monotonic clock and its timers, and with another reading of CLOCK_BOOTTIME in package clock. What the clock
// shows (time.Time without the monotonic part) is as it was: nothing rests on that.
//
// Whatever else the program does, other processes see it do at the time of the machine.
package drift

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Rate is the environment variable that says, for a program that [Build] has built, at what rate its clock runs: 0.9 is a second
// of its own in 1.11 of the machine's.
const Rate = "SUCCESSION_CLOCK_RATE"

// module is where package clock is.
const module = "github.com/succession-dev/succession"

// Build compiles the program of the package pkg, as "go build" names it, to the file out, in the present folder. It needs the source
// of Go. The runtime is compiled anew, which takes a minute of a processor the first time.
func Build(ctx context.Context, out, pkg string) error {
	dir, err := os.MkdirTemp("", "drift-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	overlay, err := overlayIn(ctx, dir)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-o", out, pkg)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s with another clock: %w\n%s", pkg, err, said)
	}
	return nil
}

// overlayIn writes the files that replace others, and returns the file that says which.
func overlayIn(ctx context.Context, dir string) (string, error) {
	ask := func(args ...string) (string, error) {
		said, err := exec.CommandContext(ctx, "go", args...).Output()
		return strings.TrimSpace(string(said)), err
	}
	root, err := ask("env", "GOROOT")
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	clock, err := ask("list", "-f", "{{.Dir}}", module+"/backend/kit/clock")
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	runtime := filepath.Join(root, "src/runtime")
	replace := make(map[string]string)
	for _, f := range []struct{ path, old, text string }{
		// On amd64 both are read at once, in assembly, past nanotime.
		{filepath.Join(root, "src/time/time.go"), "sec, nsec, mono := runtimeNow()", "sec, nsec, _ := runtimeNow()\n\tmono := runtimeNano()"},
		{filepath.Join(runtime, "time_nofake.go"), "return nanotime1()", "return drifted(nanotime1())"},
		{filepath.Join(clock, "boottime_linux.go"), "return time.Duration(ts.Nano())\n}", "return drift(time.Duration(ts.Nano()))\n}"},
		{filepath.Join(clock, "boottime_linux.go"), "int64(max(boot, 1))", "int64(max(undrift(boot), 1))"},
	} {
		from := f.path
		if earlier := replace[f.path]; earlier != "" {
			from = earlier
		}
		old, err := os.ReadFile(from)
		if err != nil {
			return "", err
		}
		if strings.Count(string(old), f.old) != 1 {
			return "", fmt.Errorf("%s is otherwise in this version, so its clock cannot be changed: %q is not in it once", f.path, f.old)
		}
		to := filepath.Join(dir, filepath.Base(f.path))
		if err := os.WriteFile(to, []byte(strings.Replace(string(old), f.old, f.text, 1)), 0o600); err != nil {
			return "", err
		}
		replace[f.path] = to
	}
	for path, text := range map[string]string{
		filepath.Join(runtime, "drift.go"): driftOfRuntime,
		filepath.Join(clock, "drift.go"):   driftOfClock,
		filepath.Join(clock, "drift.s"):    "", // as setRate has no body
	} {
		to := filepath.Join(dir, strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", "-"))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[path] = to
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, text, 0o600)
}

const driftOfRuntime = `package runtime

import _ "unsafe"

// In thousandths; 0 is that of the machine.
var driftRate, driftBase int64

//go:nosplit
func drifted(now int64) int64 {
	rate := driftRate
	if rate == 0 {
		return now
	}
	d := now - driftBase
	return driftBase + d/1000*rate + d%1000*rate/1000
}

//go:linkname driftAt ` + module + `/backend/kit/clock.setRate
func driftAt(thousandths int64) {
	driftBase = nanotime1()
	driftRate = thousandths
}
`

const driftOfClock = `package clock

import (
	"os"
	"strconv"
	"time"
	_ "unsafe"
)

func setRate(thousandths int64)

var driftRate, driftBase time.Duration

func init() {
	rate, err := strconv.ParseFloat(os.Getenv("` + Rate + `"), 64)
	if err != nil {
		return
	}
	base := sinceBoot()
	driftBase, driftRate = base, time.Duration(rate*1000)
	setRate(int64(driftRate))
}

func drift(boot time.Duration) time.Duration {
	if driftRate == 0 {
		return boot
	}
	d := boot - driftBase
	return driftBase + d/1000*driftRate + d%1000*driftRate/1000
}

func undrift(boot time.Duration) time.Duration {
	if driftRate == 0 {
		return boot
	}
	d := boot - driftBase
	return driftBase + d/driftRate*1000 + d%driftRate*1000/driftRate
}
`
