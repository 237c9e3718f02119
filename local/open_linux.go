package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/internal/logs"
)

// A Backend is a folder of this machine as coordinator. It is safe for concurrent
// use, by any number of backends in any number of processes.
type Backend struct {
	path        string
	own         bool // the path is that of the default folder
	past        past
	lockTimeout time.Duration
	watches     *notifier
	sessions    *kit.Sessions
}

var (
	_ backend.Backend = (*Backend)(nil)
)

// New returns a backend on the folder dir; empty is [DefaultDir]. If there is no folder, the first
// process that joins or writes makes it, for its own user alone; a process that only looks makes
// nothing. For several users, make the folder beforehand with the rights that they need, for
// example with install -d -m 2770 -g GROUP DIR. A user who may not write to the folder cannot open
// files in it either. Files that root writes belong to the folder's owner.
//
// New fails with [backend.ErrDenied] if everybody may write to the folder, or if the
// default folder belongs to somebody else or others may write to it. It fails with
// [backend.ErrInvalid] if the folder is on a file system that is not known to be of this
// machine alone. If the folder is made later, or cannot be written, only the first call that finds
// a fault fails. New blocks for file operations only.
func New(dir string, o *Options) (*Backend, error) {
	if o == nil {
		o = &Options{}
	}
	b := &Backend{lockTimeout: cmp.Or(max(0, o.LockTimeout), 10*time.Second)}
	if dir == "" {
		dir, b.own = DefaultDir(), true
	}
	var err error
	if b.path, err = filepath.Abs(dir); err != nil {
		return nil, wrap("open", "", err)
	}
	b.watches = newNotifier(logs.Or(o.Logger))
	b.sessions = kit.NewSessions(kit.Config{Scheme: driver, Open: b.open, Connect: b.lockTimeout, Patience: b.lockTimeout})
	f := newFolder(b.path, b.own, &b.past)
	if _, err := f.opened(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, wrap("open", "", err)
	}
	return b, wrap("open", "", f.close())
}

// Open opens the backend of a URL: local:/var/lib/app, or local: for [DefaultDir].
// A relative path is taken from the working directory. There are no hosts and no
// parameters. Package succession calls it for URLs with the scheme "local".
func Open(u *coordinator.URL) (*Backend, error) {
	if len(u.Hosts) > 0 {
		return nil, wrap("open", "", fmt.Errorf("%w URL %s: the folder is on this machine; write local:/path, without a host", backend.ErrInvalid, u))
	}
	if err := u.Err(); err != nil {
		return nil, wrap("open", "", err)
	}
	return New(u.Path, nil)
}

// Session returns the live session, or opens one. A session ends when the path of the folder leads elsewhere.
// It blocks for file operations only. It fails with [backend.ErrDenied] if the folder can no longer
// be trusted, with [backend.ErrReset] if the folder's counter has gone back, with [ErrDamaged] if
// the counter cannot be read, and with [backend.ErrClosed] after Close.
func (b *Backend) Session(ctx context.Context) (backend.Session, error) {
	return b.sessions.Session(ctx)
}

func (b *Backend) open(context.Context) (kit.Session, error) {
	f := newFolder(b.path, b.own, &b.past)
	if _, err := f.peek(0); err != nil {
		return nil, errors.Join(classify(err), f.close())
	}
	b.watches.start()
	return newSession(b, f), nil
}

// Close ends the session, removes those of its members that are not pinned, and releases
// everything that the backend holds. It waits for writes in progress, which take
// milliseconds. Closing twice is not an error.
func (b *Backend) Close() error {
	err := b.sessions.Close()
	b.watches.close()
	return err
}
