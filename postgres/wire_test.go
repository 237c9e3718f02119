package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// A server that is short of something, or is going down, may do later what it has not done. One that refuses will not.
func TestAnswered(t *testing.T) {
	for code, want := range map[string]bool{
		"54000": true, // the queue of notices is full
		"55P03": true, // a lock
		"57P01": true, // shut down
		"53300": true, // too many connections
		"40P01": true, // a deadlock
		"22P02": false,
		"42501": false,
		"3D000": false,
		"SU003": false,
	} {
		if err := answered(t.Context(), &pgconn.PgError{Code: code}); lost(err) != want {
			t.Errorf("%s: %v", code, err)
		}
	}
}
