//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd)

package fence

import (
	"context"
	"errors"
)

func lock(context.Context, string) (unlock func(), err error) {
	return nil, errors.ErrUnsupported
}
