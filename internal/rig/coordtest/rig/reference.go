package rig

import "context"

// Through returns a [conformance.Harness] Reference for n servers: the request to one server, n times in a row. A write to n servers passes
// through all of them, and a busy machine runs them one after the other. So many more servers would disturb the test more than they tell.
func Through(n int, request func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) (err error) {
		for i := 0; i < n && err == nil; i++ {
			err = request(ctx)
		}
		return err
	}
}
