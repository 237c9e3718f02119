// Package controllerruntime elects the leader among managers of controller-runtime
// (sigs.k8s.io/controller-runtime) by an election of this project. It is a module of its own, so that users of
// the library never see Kubernetes.
//
// # One line of an operator
//
// What kubebuilder has made keeps its options, and its rights, and changes
//
//	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{LeaderElection: true, LeaderElectionID: "…"})
//
// into
//
//	mgr, err := controllerruntime.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{LeaderElection: true, LeaderElectionID: "…"}, nil)
//
// The leader then holds the same Lease as before, so pods of the old and of the new release may run at the same time, and a rolling update goes
// forward and back without two leaders by its doing: package kubernetes says why ("Beside client-go"). In every process webhooks, metrics and probes
// are served and caches are filled from the start, as before, and a process stands in line when they are. The metric leader_election_master_status is that of
// client-go's election, and is there no more: pass alerts on it over to whether the Lease has a holder, or to succession_leader
// of package metrics, which NewManager takes as an option. Handing over takes milliseconds, where client-go's
// candidates look every two seconds, and a leader that is cut off or was paused stops before another one leads. Start fails with [ErrLost] when the lead is
// lost, and the process is to end then, as that of any manager.
//
// When no pod of the old release is left, nothing needs to be changed. A rule of RBAC must allow get, list, watch, create, patch and delete of
// Leases in the namespace, without resourceNames, as the leader-election role of kubebuilder does: there are more Leases than the one of the
// LeaderElectionID, with names of their own.
//
// # On any coordinator, in any number of terms
//
//	err := controllerruntime.Run(ctx, elect.New(b, "operator", nil), config, manager.Options{},
//		func(ctx context.Context, m manager.Manager, t *elect.Term) error {
//			return (&Reconciler{Client: m.GetClient(), Token: t.Token()}).SetupWithManager(m)
//		})
//
// [Run] is for controllers that must not work twice on something outside the cluster, or that run
// where there are several clusters, or none; and for those whose process is to campaign again after a loss.
//
// # The manager runs within the term
//
// Each term gets a manager of its own, which is made when the term begins, and runs as long as that
// lasts. Its own leader election is off. So all that package elect promises of a function holds of
// the manager, with all its runnables: their contexts end with the term, and before another
// can lead; a term that is resigned, as somebody asks for it, goes on to the next when all
// of them have returned; and a process that has lost its leadership campaigns again, without a new start.
//
// A manager also takes the lock that it elects by as an option (LeaderElectionResourceLockInterface), so that
// one could be made of a term. This package does not, [NewManager] neither, because the manager would ask it only from time
// to time. By default it renews every two seconds, and goes on for ten seconds when that fails. A term may
// be over by then, and another lead.
//
// # What differs from a manager with its own election
//
// A process that does not lead has no manager: it serves no webhooks, metrics or health probes, and its
// caches are empty, so a new leader first fills them. What is to run in every process goes into a
// second manager beside, that needs no leader.
//
// A runnable that ignores its context holds up the manager, and so Run, without a bound. A request to
// resign then waits for it. After a loss another leads meanwhile, as with every leader election: give the
// token of the term to what the runnable writes to.
package controllerruntime
