package controllerruntime_test

import (
	"context"
	"log"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"

	"github.com/succession-dev/succession/adapters/controllerruntime"
)

// An operator that kubebuilder has made changes one line. Pods of the old and of the new release
// may run at the same time.
func ExampleNewManager() {
	mgr, err := controllerruntime.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{LeaderElection: true, LeaderElectionID: "reports.example.com"}, nil)
	if err != nil {
		log.Print(err)
		return
	}
	// … set up the reconcilers
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		log.Print(err)
	}
}

// Controllers that work on something outside the cluster lead by another coordinator, in any number
// of terms.
func ExampleRun() {
	b := memory.New(nil).Client("web-1") // or succession.Connect(ctx, os.Getenv("SUCCESSION_URL"))
	defer b.Close()
	err := controllerruntime.Run(ctrl.SetupSignalHandler(), elect.New(b, "reports", nil), ctrl.GetConfigOrDie(), ctrl.Options{},
		func(ctx context.Context, m ctrl.Manager, t *elect.Term) error {
			log.Print("leading with token ", t.Token())
			return nil // … set up the reconcilers with m
		})
	if err != nil {
		log.Print(err)
	}
}
