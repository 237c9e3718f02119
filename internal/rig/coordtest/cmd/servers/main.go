// Servers builds the servers and tools that the tests run, all of them or those that are
// named, and prints where they are:
//
//	go run ./internal/rig/coordtest/cmd/servers [etcd] [etcdctl] [consul] [kube-apiserver] [kube-apiserver-oldest]
//
// Tests build what they need by themselves. This command is for those who would rather
// wait now than in the middle of a test. Packages kubernetes and bench need kube-apiserver, bench only where it
// has been built or is asked for.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/succession-dev/succession/internal/rig/coordtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	names := os.Args[1:]
	if len(names) == 0 {
		names = coordtest.ServerBinaries()
	}
	for _, name := range names {
		path, err := coordtest.ServerBinary(ctx, name)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Printf("%s\t%s\n", name, path)
	}
}
