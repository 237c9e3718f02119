//go:build !linux

package target

import (
	"errors"

	"github.com/succession-dev/succession/backend"
)

func newLocal(*backend.URL) (operator, error) { return nil, errors.ErrUnsupported }
