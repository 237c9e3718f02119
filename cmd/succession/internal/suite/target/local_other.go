//go:build !linux

package target

import (
	"errors"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/operator"
)

func newLocal(*backend.URL) (operator.Operator, error) { return nil, errors.ErrUnsupported }
