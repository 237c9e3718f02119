// Package task runs each task on one machine at a time, although machines fail: long-running tasks
// with machines that stand by ([Standby]), and tasks in line that a master assigns to workers
// ([Pool]).
//
// # Standby
//
// A task such as a replication runs on exactly one of several machines. It records how far it has
// come. When its machine fails, another one goes on from there.
//
//	s := task.NewStandby(b, "bus", nil)
//	err := s.Hot(ctx, "orders", func(ctx context.Context, r *task.Run) error {
//		for at := r.Position(); ; at++ {
//			if err := copy(ctx, at); err != nil {
//				return err
//			}
//			if err := r.Commit(ctx, at+1); err != nil {
//				return err
//			}
//		}
//	})
//
// Hot machines stand in the line of one task: the first runs it, and the next takes over as soon as
// the first has gone. Cold machines are bound to no task: they look for one that nobody runs.
//
//	bus-run-orders     m1  <-  m2  <-  m3       m1 runs orders; m2 and m3 stand by, hot
//	bus-run-bills      m4                       m4 came from the line of the idle
//	bus-run-users      -                        to run, and nobody runs it: m5 is about to
//	bus-idle           m5  <-  m6  <-  m7       cold; m5 looks for a task, m6 and m7 wait behind it
//
//	bus-tasks/orders      {"state":"started","starts":3,...}          Start, Stop, finished, Configure
//	bus-position/orders   {"position":4711,"token":93,"id":"m1",...}  Commit
//	bus-news              orders                                     the newest Start wakes m5
//
// A console starts and stops tasks ([Standby.Start], [Standby.Stop]), gives each a configuration
// ([Standby.Configure]), and takes a machine off one ([Standby.Move]); a monitor shows which
// machine runs which task, since when, and which tasks nobody runs ([Standby.Status]).
//
// One machine at a time runs a task: the context of a run ends before another machine can begin, as
// long as the process runs. Positions never go back: [Run.Commit] writes only while the machine
// stands first in the task's line, and the coordinator checks that in the same atomic step. So a
// machine that was paused or cut off, and replaced, cannot overwrite the position of the next one,
// whatever clocks do. What it has done after its last commit is done again: a task must be able to
// repeat that, or give [recipes.Hold.Token] to a store that refuses smaller ones.
//
// A position is a number. If a number is not enough, it can have a text beside it
// ([Run.CommitText]), such as the file of a log with an offset.
//
// A task goes through a migration (package migrate) as an election does: begin that of each line,
// bus-run-orders and bus-idle here. The position moves with the line. The record of what the
// console has said does not move by itself: the cutover names it, and carries it over if it is told
// to; otherwise call Configure and Start again on the new coordinator. A pool does not go through a
// migration.
//
// In requests: to begin a run costs an election, a read of the task's record and then a watch on
// it, and a read and a write of the position. A commit costs one write, Start three requests and
// Stop two. A machine that stands by, hot or cold, has one watch, on the member just in front. Only
// the first of the idle machines looks at tasks: each look costs two requests, and one for each
// started task (on ZooKeeper one more for each task). It waits with one watch for each task that a
// machine runs.
//
// # Pool
//
// Clients put tasks in line, one master assigns each to a worker, and the client gets the result.
//
//	p := task.NewPool(b, "jobs", nil)
//	err := p.Work(ctx, func(ctx context.Context, t *task.Task) (string, error) { // on each machine
//		return convert(ctx, t.Value)
//	})
//	...
//	id, err := p.Submit(ctx, "holiday.mov") // on any machine
//	result, err := p.Result(ctx, id)
//
// Every worker also stands for master.
//
//	jobs-todo            t7   t8   t9   t10            items; they stay until they are done
//	jobs-workers         w1   w2   w3                  present together, none waits for another
//	jobs-master          w1  <-  w2  <-  w3            w1 is the master
//
//	jobs-assigned/W1     {"id":7,"run":1,...}          the master writes, worker w1 follows
//	jobs-assigned/W2     {"id":8,"run":2,...}          run 2: the first worker has died
//	jobs-results/6       {"value":"..."}               until Forget
//
// Tasks begin in order. A worker has one task at a time, so that none waits behind a long one while
// another worker is free. The master gives the next task to the worker that has waited longest. It
// writes only while it is the master, which the coordinator checks in the same step. All that it
// knows is stored: the next master reads that, and goes on.
//
// Nothing is lost, and nothing is run by two at the same time. The task of a worker that dies goes
// to another one when the first one's presence has gone. The context of its run has ended before
// that. A worker first stores the result and then removes the task from the line, both only while
// it is present, which the coordinator checks. If it dies before the result is stored, another
// worker runs the task again. If it dies after that, the next worker finds the result and only
// removes the task. So a task has one result. After crashes a task may be begun several times:
// [Task.Run] tells a store which of two runs is the later one.
//
// A task is in line once, also if the answer to Submit is lost. A client that may be restarted
// gives the task a name of its own ([Pool.SubmitAs]), and submits it again after a restart.
//
// In requests: a task costs its client one to submit it, the master one, and its worker two. Each
// client that waits for the result has one watch. The worker is woken by its own record, and the
// master by changes of the lines of tasks and workers, which it alone watches. None of this grows
// with the number of tasks or workers. To begin, a master reads each assignment once.
//
// For tasks that take less than a few round trips, use package queue: its consumers take items
// without a master.
//
// # Other recipes
//
// Curator, kazoo, etcd and Consul have neither a standby nor a pool. ZooKeeper's own documents
// describe both as uses of its recipes.
//
// A backend needs records for a Standby, and records, shared members and items for a Pool; see
// package backend.
package task
