package main

import (
	"github.com/succession-dev/succession/bench/internal/candidate"
	"github.com/succession-dev/succession/internal/coordtest"
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
	told        string // by what its leader is told
}

// id is what -library is matched with.
func (l library) id() string { return l.coordinator + ": " + l.name }

var libraries = []library{
	{coordinator: etcd, name: "succession", kind: candidate.Succession, told: "the term's context ends"},
	{coordinator: etcd, name: "concurrency.Election", kind: candidate.Concurrency, module: "go.etcd.io/etcd/client/v3", told: "Session.Done is closed"},
	{coordinator: consul, name: "succession", kind: candidate.Succession, told: "the term's context ends"},
	{coordinator: consul, name: "api.Lock", kind: candidate.ConsulLock, module: "github.com/hashicorp/consul/api", told: "the channel that Lock returned is closed"},
	{coordinator: zookeeper, name: "succession", kind: candidate.Succession, told: "the term's context ends"},
	{coordinator: zookeeper, name: "Curator LeaderLatch", kind: coordtest.PeerCuratorLatch, peer: true, told: "notLeader is called"},
	{coordinator: zookeeper, name: "Curator LeaderSelector", kind: coordtest.PeerCuratorSelector, peer: true, told: "takeLeadership is interrupted, by LeaderSelectorListenerAdapter"},
	{coordinator: zookeeper, name: "kazoo Election", kind: coordtest.PeerKazoo, peer: true, told: "a listener of the connection hears SUSPENDED or LOST"},
	{coordinator: zookeeper, name: "zk.Lock", kind: candidate.ZKLock, module: "github.com/go-zookeeper/zk", told: "the connection's StateExpired; the lock itself never tells"},
	{coordinator: zookeeper, name: "zk.Lock, on disconnect", kind: candidate.ZKLockDisconnect, module: "github.com/go-zookeeper/zk", told: "the connection's StateDisconnected; the lock itself never tells"},
}
