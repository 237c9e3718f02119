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

// NameOf returns what a member is called: its id, or its key, as members of other programs need not have an id.
func NameOf(id, key string) string { return cmp.Or(id, key) }
