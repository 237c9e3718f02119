// Handover measures what it costs to hand leadership on: the time from the leader's resigning
// until the next in line is told that it leads, beside the floor of each coordinator.
//
//	go run -C bench ./handover                       # lines of 5 and of 1,000
//	go run -C bench ./handover -library etcd -n 5 -times 500
//
// The floor is the least that any election can do: the delete of a key, the notification of
// somebody who watches that key, and one read by whoever was notified; with the coordinator's
// own client and nothing else. It is measured in turn with the handovers, on the same server,
// so that both meet the same machine; what counts is the ratio.
//
// All candidates of a line are in this one process. Those of this project share a session, as
// a process's do; etcd's package concurrency and Consul's api.Lock need one each; go-zookeeper's
// locks share a connection. Curator's are all in one process of Java, where they share one too;
// their times are taken there, and have a thread to wake in them that the others do not need. A
// leader that has resigned joins again at the end of the line before the next handover.
//
// Not measured are many processes, networks and loads: a server, its clients and this program
// share the cores of one machine.
package main
