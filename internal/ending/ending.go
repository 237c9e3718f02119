// Package ending decides whether a function that was told to end has returned an error of its own, or only repeats the order. It is for
// loops that call such a function whenever the process leads, or is present.
package ending

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// Failed reports whether err, with which a function ended that had been told to end, says more than that. ctx told it, or one of causes did.
func Failed(ctx context.Context, err error, causes ...error) bool {
	return len(beside(ctx, err, causes)) > 0
}

// Told returns the error of a call whose ctx has ended, after the function that it called has ended with err. If err is [Failed], that is
// what it says besides, with the cause of ctx in the text only: so it does not look like an end in order. Otherwise it is [Ended].
func Told(ctx context.Context, err error, causes ...error) error {
	cause := context.Cause(ctx)
	if says := beside(ctx, err, causes); len(says) > 0 {
		return &failure{fmt.Sprintf("%v; it was told to end: %v", err, cause), says}
	}
	return Ended(ctx, cause)
}

type failure struct {
	text string
	says []error
}

func (f *failure) Error() string   { return f.text }
func (f *failure) Unwrap() []error { return f.says }

// beside returns what err says besides that its function was told to end.
func beside(ctx context.Context, err error, causes []error) []error {
	says, _ := without(err, append(causes, context.Canceled, ctx.Err(), context.Cause(ctx)))
	return says
}

// without returns the parts of err that are not echoes. An error of several parts is one such as [errors.Join] makes. whole is true if there
// is no echo in err, so that says is err itself.
func without(err error, echoes []error) (says []error, whole bool) {
	is := func(echo error) bool { return reflect.TypeOf(err).Comparable() && err == echo }
	if err == nil || slices.ContainsFunc(echoes, is) {
		return nil, false
	}
	if e, ok := err.(interface{ Is(error) bool }); ok && slices.ContainsFunc(echoes, func(echo error) bool { return echo != nil && e.Is(echo) }) {
		return nil, false
	}
	if e, ok := err.(interface{ Unwrap() []error }); ok {
		whole = true
		for _, part := range e.Unwrap() {
			if part != nil {
				s, w := without(part, echoes)
				says, whole = append(says, s...), whole && w
			}
		}
	} else if inner := errors.Unwrap(err); inner != nil {
		says, whole = without(inner, echoes)
	} else {
		whole = true
	}
	if whole {
		says = []error{err}
	}
	return says, whole
}

// Ended returns err so that it also matches the Err of ctx, if ctx has ended: a cause need not.
func Ended(ctx context.Context, err error) error {
	if ctx.Err() == nil || errors.Is(err, ctx.Err()) {
		return err
	}
	return fmt.Errorf("%w (%w)", err, ctx.Err())
}
