package main

import (
	"github.com/succession-dev/succession/bench/internal/candidate"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// The coordinators.
const (
	etcd      = "etcd"
	consul    = "consul"
	zookeeper = "zookeeper"
)

// titles are the coordinators' names for people.
var titles = map[string]string{etcd: "etcd", consul: "Consul", zookeeper: "ZooKeeper"}

// A library is what elects.
type library struct {
	coordinator string
	name        string
	kind        string // of package candidate, or the peer of coordtest
	peer        bool   // kind is one of coordtest
	module      string // whose version counts; empty is this project, or a peer
	asks        string // what its leader asks before each act
}

// id is what -library is matched with.
func (l library) id() string { return l.coordinator + ": " + l.name }

var libraries = []library{
	{coordinator: etcd, name: "succession", kind: candidate.Succession, asks: "Term.Check() == nil"},
	{coordinator: etcd, name: "concurrency.Election", kind: candidate.Concurrency, module: "go.etcd.io/etcd/client/v3", asks: "Session.Done is not closed"},
	{coordinator: consul, name: "succession", kind: candidate.Succession, asks: "Term.Check() == nil"},
	{coordinator: consul, name: "api.Lock", kind: candidate.ConsulLock, module: "github.com/hashicorp/consul/api", asks: "the channel that Lock returned is not closed"},
	{coordinator: zookeeper, name: "succession", kind: candidate.Succession, asks: "Term.Check() == nil"},
	{coordinator: zookeeper, name: "Curator LeaderLatch", kind: coordtest.PeerCuratorLatch, peer: true, asks: "hasLeadership() is true"},
	{coordinator: zookeeper, name: "Curator LeaderSelector", kind: coordtest.PeerCuratorSelector, peer: true, asks: "its thread is not interrupted, which LeaderSelectorListenerAdapter does"},
	{coordinator: zookeeper, name: "kazoo Election", kind: coordtest.PeerKazoo, peer: true, asks: "a flag is up, which a listener of the connection takes down on SUSPENDED and LOST"},
	{coordinator: zookeeper, name: "zk.Lock", kind: candidate.ZKLock, module: "github.com/go-zookeeper/zk", asks: "a flag is up, which the connection's StateExpired takes down; the lock itself never tells"},
	{coordinator: zookeeper, name: "zk.Lock (on disconnect)", kind: candidate.ZKLockDisconnect, module: "github.com/go-zookeeper/zk", asks: "a flag is up, which the connection's StateDisconnected takes down; the lock itself never tells"},
}
