// The driver for PostgreSQL. A module of its own, so that users of the other coordinators never see pgx.
module github.com/succession-dev/succession/postgres

go 1.25.0

replace github.com/succession-dev/succession => ..

require (
	github.com/jackc/pgx/v5 v5.12.0
	github.com/succession-dev/succession v0.1.0
)

require (
	github.com/anishathalye/porcupine v1.3.1 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.35.0 // indirect
	golang.org/x/text v0.41.0 // indirect
)
