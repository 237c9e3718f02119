// Package ui has what all subcommands do alike for the one who has called them: they
// check arguments, print text or JSON, listen to signals, and exit with a code.
package ui
