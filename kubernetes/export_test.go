package kubernetes

// SessionName returns the name of the newest session's object, or "".
func SessionName(b *Backend) string {
	if s, ok := b.sessions.Newest().(*session); ok {
		return s.name
	}
	return ""
}

// RecordName returns the name of the object that a record is.
func RecordName(b *Backend, name string) string { return b.recordName(name) }
