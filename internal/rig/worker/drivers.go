//go:build linux

package worker

import (
	_ "github.com/succession-dev/succession/consul"
	_ "github.com/succession-dev/succession/etcd"
	_ "github.com/succession-dev/succession/local"
	_ "github.com/succession-dev/succession/migrate"
	_ "github.com/succession-dev/succession/zookeeper"
)
