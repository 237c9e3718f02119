// Package deploy has what takes succession, and programs that use it, to machines. docs/deploying.md
// is the guide; here is what it copies:
//
//	packages     builds Debian and RPM packages of the command, with manual pages and completions
//	container    an image from scratch, by Docker or without it
//	kubernetes   a Deployment with what belongs to it
//	systemd      units
package deploy
