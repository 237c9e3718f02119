package ui

import (
	"cmp"
	"os"
	"os/user"
)

// WhoAmI names the person at the shell, as in anna@host.
func WhoAmI() string {
	host, _ := os.Hostname()
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return cmp.Or(name, "somebody") + "@" + cmp.Or(host, "unknown-host")
}
