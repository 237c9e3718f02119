//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "rehearsal: rehearsals need Linux")
	os.Exit(1)
}
