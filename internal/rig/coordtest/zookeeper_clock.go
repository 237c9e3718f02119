package coordtest

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

// wallclock is the source of a library that stands between java and the system's
// clock.
//
//go:embed clock/wallclock.c
var wallclock []byte

// SetClock sets the wall clock that all servers read shift ahead of this machine's, or
// back where shift is negative, from now on; 0 sets it right. Their clocks that only
// measure go on as they do, as on a machine whose clock somebody sets. It needs the
// option Clock.
func (z *ZooKeeper) SetClock(shift time.Duration) error {
	if !z.opts.Clock {
		return errors.New("set clock: the ZooKeeper was started without the option Clock")
	}
	return setClock(z.clockFile(), shift)
}

// setClock writes the shift of a wall clock to the file that the library reads.
func setClock(file string, shift time.Duration) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	// In one piece: the servers read it all the time.
	_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(shift)), 0)
	return errors.Join(err, f.Close())
}

func (z *ZooKeeper) clockFile() string { return filepath.Join(z.dir, "clock") }

// withClock returns the command line of a server whose wall clock SetClock sets.
func (z *ZooKeeper) withClock(argv []string) ([]string, error) {
	if !z.opts.Clock {
		return argv, nil
	}
	lib, err := compiledWallclock()
	if err != nil {
		return nil, err
	}
	if err := z.SetClock(0); err != nil {
		return nil, err
	}
	return append([]string{"/usr/bin/env", "LD_PRELOAD=" + lib, "WALLCLOCK=" + z.clockFile()}, argv...), nil
}

// compiledWallclock compiles the library, once for its source.
var compiledWallclock = sync.OnceValues(func() (string, error) {
	cc := cmp.Or(os.Getenv("CC"), "cc")
	key := append([]byte(cc+runtime.GOARCH), wallclock...)
	return cached(context.Background(), key, "wallclock.so", func(part string) error {
		cmd := exec.Command(cc, "-shared", "-fPIC", "-O2", "-o", part, "-x", "c", "-")
		cmd.Stdin = bytes.NewReader(wallclock)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("the option Clock takes Linux with glibc and a C compiler: %s: %w\n%s", cc, err, out)
		}
		return nil
	})
})
