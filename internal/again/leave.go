package again

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
)

// Leave removes m, which s has joined, from its line. If it cannot be removed before bounded ends,
// a goroutine goes on trying as long as the session lives, so that no member stands without an
// owner. Ending the session instead would end other terms too.
func Leave(bounded context.Context, s backend.Session, m backend.Member, log *slog.Logger) error {
	err := quit(bounded, s, m, log)
	if err == nil {
		return nil
	}
	log.Warn("could not leave the line, trying on", "key", m.Key, "err", err)
	apart := backoff.Apart(context.WithoutCancel(bounded))
	go func() { // its owner is the session, with which it ends
		if quit(apart, s, m, log) == nil {
			log.Info("left the line at last", "key", m.Key)
		}
	}()
	return fmt.Errorf("%w; the member stands until it can be removed, which is tried on, or the session ends", err)
}

// quit removes m from the line, and tries until ctx ends. It returns nil when m has gone,
// or its session has ended. If the coordinator refuses to remove m, it always will: quit
// then ends the session.
func quit(ctx context.Context, s backend.Session, m backend.Member, log *slog.Logger) error {
	wait := backoff.New(ctx)
	for {
		err := s.Leave(ctx, m)
		switch {
		case err == nil, errors.Is(err, backend.ErrSessionEnded):
			return nil
		case ctx.Err() != nil:
			return wait.Cause(ctx)
		case !Passing(err):
			log.Warn("may not leave the line; ending the session", "key", m.Key, "err", err)
			if cerr := s.Close(ctx); cerr != nil {
				return fmt.Errorf("%w: %w", err, cerr)
			}
			return nil
		}
		pause := time.NewTimer(wait.Failed(err))
		select {
		case <-pause.C:
		case <-ctx.Done():
		case <-s.Done():
		}
		pause.Stop()
	}
}
