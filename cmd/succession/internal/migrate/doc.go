// Package migrate is the subcommand migrate: an operator's steps of a migration, which
// the library's package migrate takes, from flags to printed status.
package migrate
