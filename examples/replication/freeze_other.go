//go:build !unix

package main

import (
	"errors"
	"os"
)

// freeze fails: processes cannot be stopped here. The run then kills them.
func freeze(*os.Process) error { return errors.ErrUnsupported }

func thaw(*os.Process) error { return errors.ErrUnsupported }
