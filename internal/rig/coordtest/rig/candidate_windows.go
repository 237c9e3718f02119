package rig

import "os/exec"

// ownGroup does nothing here, where nothing stops a process.
func ownGroup(*exec.Cmd) {}
