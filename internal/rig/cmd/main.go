//go:build linux

// The command has chaos runs and rehearsals on the coordinators of this module; see package command.
package main

import "github.com/succession-dev/succession/internal/rig/command"

func main() { command.Main() }
