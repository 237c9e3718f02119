package engine

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"runtime/pprof"
	"strings"
	"time"
)

// The labels of goroutines (runtime/pprof). A goroutine inherits the labels of the one that
// starts it.
const (
	trialLabel = "conformance"
	partLabel  = "conformance-part"
)

// Goroutines are the goroutines that a part of a rule has started, directly or not.
type Goroutines struct {
	t    *Trial
	mark string
}

// Started runs f, and returns a handle on the goroutines that f starts.
func (t *Trial) Started(f func()) Goroutines {
	g := Goroutines{t, rand.Text()}
	pprof.Do(t.Ctx, pprof.Labels(partLabel, g.mark), func(context.Context) { f() })
	return g
}

// End waits until none of the goroutines is left, which must be soon. It looks less and less
// often, because each look stops all goroutines and formats every frame of every stack.
func (g Goroutines) End(what string) {
	deadline := time.NewTimer(g.t.Soon())
	defer deadline.Stop()
	late := false
	for wait := g.t.Tick(); ; wait *= 2 {
		n, stacks := labelled(partLabel, g.mark)
		switch {
		case n == 0:
			return
		case late:
			g.t.Fatalf("%s: %d\n%s", what, n, stacks)
		}
		select {
		case <-time.After(wait):
		case <-g.t.Ctx.Done():
			g.t.Fatalf("%s: %v", what, context.Cause(g.t.Ctx))
		case <-deadline.C:
			late = true
		}
	}
}

// labelled returns the number of goroutines with the label, and their stacks. It parses the
// text form of the goroutine profile.
func labelled(label, value string) (n int, stacks string) {
	var b bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
		return 0, err.Error()
	}
	_, profile, _ := strings.Cut(b.String(), "\n") // the first line is the total
	var found []string
	for stack := range strings.SplitSeq(profile, "\n\n") {
		if !strings.Contains(stack, fmt.Sprintf("%q:%q", label, value)) {
			continue
		}
		count := 0
		fmt.Sscanf(stack, "%d @", &count)
		n += count
		found = append(found, stack)
	}
	return n, strings.Join(found, "\n\n")
}
