// Package gocron lets schedulers of gocron (github.com/go-co-op/gocron/v2) on many machines run each
// job once. It has gocron's Elector and its Locker, on an election and on locks of this project. It is
// a module of its own, so that users of the library never see gocron.
//
//	import electgocron "github.com/succession-dev/succession/adapters/gocron"
//
//	elector := electgocron.NewElector(elect.New(b, "jobs", nil))
//	defer elector.Close() // after the scheduler's Shutdown
//	s, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
//	...
//	s.NewJob(gocron.DurationJob(time.Hour), gocron.NewTask(elector.Task(sendReports)))
//
// # Which of the two
//
// With an [Elector] one scheduler runs all jobs, and the others none. With a [Locker] whichever
// scheduler is first runs a job, so jobs are spread. The Elector is the one to take where a
// job must not be run twice: leadership lasts from run to run, so it does not matter that the
// clocks of two machines differ.
//
// # What gocron does not know
//
// gocron asks whether a job may run when its time has come, and not again. A job that runs when
// leadership ends runs on, although another leads. [Elector.Task] is for jobs that must not: its
// context ends with the term, the next leader waits for it where that is possible, and it has the
// term, whose token makes a store refuse a job that is late.
//
// A job whose lock is lost is not told, as gocron has no means for that. The log of [LockerOptions]
// says so.
package gocron
