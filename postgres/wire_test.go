package postgres

import (
	"strings"
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
		"25P04": true, // the transaction took too long
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

// A warning makes an answer a lost one, unless it is about the server's vacuum.
func TestWarns(t *testing.T) {
	for _, c := range []struct {
		severity, routine string
		want              bool
	}{
		{"WARNING", "SyncRepWaitForLSN", true},
		{"", "SyncRepWaitForLSN", true},
		{"WARNING", "", true},
		{"WARNING", "GetNewTransactionId", false},
		{"WARNING", "GetNewMultiXactId", false},
		{"WARNING", "asyncQueueFillWarning", false},
		{"NOTICE", "", false},
	} {
		if got := warns(&pgconn.Notice{SeverityUnlocalized: c.severity, Routine: c.routine}); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// Whatever host is tried first, it is tried with TLS before it is tried without, as sslmode prefer says.
func TestRotate(t *testing.T) {
	cfg, err := pgconn.ParseConfig("host=h1,h2 port=1,2 user=x sslmode=prefer")
	if err != nil {
		t.Fatal(err)
	}
	w := newWire(nil, nil, new(Options))
	for _, want := range []string{"h1+ h1 h2+ h2", "h2+ h2 h1+ h1", "h1+ h1 h2+ h2"} {
		turned := cfg.Copy()
		if n := w.rotate(turned); n != 2 {
			t.Errorf("there are %d hosts", n)
		}
		var got []string
		for _, way := range append([]*pgconn.FallbackConfig{{Host: turned.Host, TLSConfig: turned.TLSConfig}}, turned.Fallbacks...) {
			if way.TLSConfig != nil {
				way.Host += "+"
			}
			got = append(got, way.Host)
		}
		if order := strings.Join(got, " "); order != want {
			t.Errorf("turn %d: %s, want %s", w.turn.Load(), order, want)
		}
		w.turn.Add(1)
	}
}

// Timelines can be compared within one system, and starts of servers cannot.
func TestPrecedes(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"77/00000001", "77/00000002", true},
		{"77/00000009", "77/0000000A", true},
		{"77/00000002", "77/00000002", false},
		{"77/00000002", "77/00000001", false},
		{"77/00000001", "78/00000002", false},
		{"7/00000001", "77/00000002", false},
		{"start/1", "start/2", false},
		{"", "77/00000002", false}, // of a schema whose heartbeat does not say it
		{"77/00000001", "", false},
	} {
		if got := precedes(c.a, c.b); got != c.want {
			t.Errorf("%q precedes %q: %v", c.a, c.b, got)
		}
	}
}
