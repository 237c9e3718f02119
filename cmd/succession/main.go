package main

import (
	"log/slog"
	"os"

	// The coordinators that --url can name.
	_ "github.com/succession-dev/succession/consul"
	_ "github.com/succession-dev/succession/etcd"
	_ "github.com/succession-dev/succession/kubernetes"
	_ "github.com/succession-dev/succession/local"
	_ "github.com/succession-dev/succession/postgres"
	_ "github.com/succession-dev/succession/spread"
	_ "github.com/succession-dev/succession/zookeeper"
)

func main() {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // commands say in their own words what happens
	os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
}
