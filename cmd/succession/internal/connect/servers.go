package connect

import "github.com/succession-dev/succession/backend/coordinator"

// Servers returns the addresses of the servers that u names, host:port each; none where
// it names none, or its kind of coordinator has none.
func Servers(u *coordinator.URL) []string {
	d, err := coordinator.DefaultMux.Driver(u)
	if err != nil || d.Port == "" {
		return nil
	}
	return u.HostPorts(d.Port)
}

// AsksForTLS reports whether u, or what its driver takes from the environment, asks for
// TLS.
func AsksForTLS(u *coordinator.URL) bool {
	d, err := coordinator.DefaultMux.Driver(u)
	return err == nil && d.TLS != nil && d.TLS(u)
}
