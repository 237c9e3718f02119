package elect

import (
	"context"
	"errors"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/unready"
)

// recordReadiness writes or deletes the member's record whenever its readiness changes, until ctx
// ends.
func (st *standing) recordReadiness(ctx context.Context) {
	err := again.Until(ctx, passing, func() (over bool, err error) {
		changed, why := st.ready.now()
		if (why != nil) != st.recorded || st.doubt {
			st.doubt = true
			if err := st.record(ctx, why); err != nil {
				return false, err
			}
			st.doubt = false
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
		return false, nil
	})
	if errors.Is(err, backend.ErrDenied) { // otherwise the member has gone, or there are no records
		st.e.o.Logger.Warn("cannot say that this one is not ready, or is ready again", "key", st.m.Key, "err", err)
	}
}

// record writes that the member is not ready, and why. If why is nil, it deletes that and rings the
// bell.
func (st *standing) record(ctx context.Context, why error) error {
	e := st.e
	name, own := unready.Record(e.name, st.m.Position), &backend.If{Member: st.m}
	if why == nil {
		if err := st.s.Delete(ctx, name, nil); err != nil {
			return err
		}
		if _, err := st.s.Put(ctx, unready.Folder(e.name), nil, nil); err != nil {
			return err // the caller repeats all of it, so that those who wait for the bell hear it
		}
		st.recorded = false
		e.o.Logger.Info("ready", "key", st.m.Key)
		return nil
	}
	reason := why.Error()
	if _, err := st.s.Put(ctx, name, []byte(reason[:min(len(reason), unready.MaxReason)]), own); err != nil {
		return err
	}
	st.recorded = true
	e.o.Logger.Warn("not ready", "key", st.m.Key, "err", why)
	return nil
}
