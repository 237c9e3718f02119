package main

// The coordinators that --url can name.
import (
	_ "github.com/succession-dev/succession/local"
	_ "github.com/succession-dev/succession/zookeeper"
)
