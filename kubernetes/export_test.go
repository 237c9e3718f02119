package kubernetes

// SessionName returns the name of the newest session's object, or "".
func SessionName(b *Backend) string {
	if s, ok := b.sessions.Newest().(*session); ok {
		return s.name
	}
	return ""
}

// NoGuard keeps the sessions of a backend from watching over all sessions. It is called before the first is opened.
func NoGuard(b *Backend) { b.guards = 0 }

// RecordName returns the name of the object that a record is.
func RecordName(b *Backend, name string) string { return b.recordName(name) }

// ToldOfDeletion tells the newest session that the object of a record was deleted.
func ToldOfDeletion(b *Backend, record string) {
	s := b.sessions.Newest().(*session)
	s.observe(event{deleted: true, object: s.newRecord(record)})
}

// MaxUnderWay is how many requests a backend has under way, with the renewal of its session. WatchesOf is how many watches a session has
// for so many records, or sessions of others.
const MaxUnderWay = maxTurns + maxUrgent + 1

func WatchesOf(n int) int { return (n + mostWatched) / mostWatched }
