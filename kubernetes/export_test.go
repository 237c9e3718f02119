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

// Busy takes all turns of a backend, as they become free, and those for urgent requests as well if all is set, until its result is called.
func Busy(b *Backend, all bool) (free func()) {
	done := make(chan struct{})
	occupy := func(c chan struct{}) {
		for range cap(c) {
			go func() {
				select {
				case c <- struct{}{}:
					<-done
					<-c
				case <-done:
				}
			}()
		}
	}
	occupy(b.wire.turns.all)
	if all {
		occupy(b.wire.turns.urgent)
	}
	return func() { close(done) }
}
