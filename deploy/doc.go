// Package deploy has what takes succession, and programs that use it, to machines. docs/deploying.md
// is the guide; here is what it copies:
//
//	packages     builds Debian and RPM packages of the command, with manual pages and completions
//	container    an image from scratch, by Docker or without it
//	kubernetes   Deployments with what belongs to them, a kustomization, a chart of Helm
//	systemd      units
//
// What is built is the same each time that a commit is built, and times in it are those of the commit. Tests render the chart and the
// kustomization by what Helm and kubectl do that with, and hold the results to the same rules as the manifests.
package deploy
