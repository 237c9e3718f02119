// The Elector and the Locker of gocron. A module of its own, so that users of the library never
// see gocron.
module github.com/succession-dev/succession/adapters/gocron

go 1.25.0

replace github.com/succession-dev/succession => ../..

require (
	github.com/go-co-op/gocron/v2 v2.21.2
	github.com/succession-dev/succession v0.1.0
	go.uber.org/goleak v1.3.0
)

require (
	github.com/google/uuid v1.6.0 // indirect
	github.com/jonboulle/clockwork v0.5.0 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	golang.org/x/sys v0.35.0 // indirect
)
