// Package redact leaves out of what is shown to people what may be a password.
package redact

import "strings"

// Path returns the path of a URL without what stands before an @: somebody may have put a password there.
func Path(path string) string {
	i := strings.LastIndexByte(path, '@')
	if i < 0 {
		return path
	}
	return path[:len(path)-len(strings.TrimLeft(path, "/"))] + "redacted" + path[i:]
}
