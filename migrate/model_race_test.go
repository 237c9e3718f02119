//go:build race

package migrate_test

// raced says that the race detector is on, which makes the model three times as slow and
// finds nothing in it: it has no goroutines. Fewer mixes are explored then.
const raced = true
