package kubernetes

// SessionName returns the name of the newest session's object, or "".
func SessionName(b *Backend) string {
	if s, ok := b.sessions.Newest().(*session); ok {
		return s.name
	}
	return ""
}
