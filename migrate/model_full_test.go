//go:build !race

package migrate_test

// raced says that all mixes are explored; see its other declaration.
const raced = false
