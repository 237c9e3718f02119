package local

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/succession-dev/succession/backend"
)

// ErrDamaged says that a file of the folder cannot be understood: it was cut off, or
// somebody else has written it. The error around it names the file and says what can be
// done. Nothing is guessed from such a file, because tokens could then fall.
var ErrDamaged = errors.New("file is damaged")

// unsupported says that this is not Linux, and what to use instead.
func unsupported(system string) error {
	return fmt.Errorf("%w: local: needs the locks and FIFOs of Linux, and this is %s. Start a coordinator, such as etcd by the command etcd, "+
		"and name it: etcd://127.0.0.1:2379/app", errors.ErrUnsupported, system)
}

// damagedState says that the file at path, which has the state of a name, is damaged.
func damagedState(path, name string, why error) error {
	return fmt.Errorf("%w: %s: %w. Put a good copy back, or remove it: the record %s is then lost, and the candidates join anew",
		ErrDamaged, path, why, name)
}

// damagedLine says that the @line at path is damaged, and that somebody stands whom it may have listed.
func damagedLine(path, name string, why error) error {
	return fmt.Errorf("%w: %s: %w. Put a good copy back, or remove it: the candidates of %s then join anew", ErrDamaged, path, why, name)
}

// wrap returns err, which may come from the system, as the error of an operation.
func wrap(op, name string, err error) error { return driver.Wrap(op, name, classify(err)) }

// classify adds an error of the contract to one of the system. For a missing right somebody must
// act. Everything else (a full disk, too many open files, a file system that has become read-only)
// may pass by itself, and callers try again.
func classify(err error) error {
	var errno syscall.Errno
	switch {
	case !errors.As(err, &errno), errors.Is(err, ErrDamaged), errors.Is(err, backend.ErrInvalid),
		errors.Is(err, backend.ErrDenied), errors.Is(err, backend.ErrUnavailable):
		return err
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %w", backend.ErrDenied, err)
	default:
		return fmt.Errorf("%w: %w", backend.ErrUnavailable, err)
	}
}
