package postgres

// Requests is how many requests the backend has sent.
func Requests(b *Backend) int64 { return b.wire.requests.Load() }
