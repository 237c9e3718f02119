//go:build unix && !linux

package child

import (
	"os"
	"syscall"
)

const adopts = false

func adopt() {}

func fallBack() {}

func commandAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func executable() (string, error) { return os.Executable() }

func killGroup(pgid int) { syscall.Kill(-pgid, syscall.SIGKILL) }

// leftBehind sends sig to what is left of the command's process group, which keeps
// its id as long as anybody is in it.
func (g *guard) leftBehind(sig syscall.Signal) { syscall.Kill(-g.pid, sig) }
