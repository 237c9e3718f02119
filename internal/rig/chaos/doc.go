// Package chaos runs candidates, each in a process of its own, against a real coordinator of
// several servers. It does to both what breaks in production, and proves from what they wrote
// down that the guarantees held.
//
//	go run -C cmd/succession ./internal/rig chaos -on zookeeper -for 30m
//
// # What is run
//
// Five workers (package worker) stand in the lines of two elections. Each reaches the
// coordinator through proxies of its own. The leader writes several times a second: to a
// store that fences (package store), just after a check, and to two records of the
// coordinator, on condition that its member stands. Workers note what they do, and the run
// notes its faults, in files with times of one clock.
//
// ZooKeeper, etcd and Consul ask for a secret, and can be reached by TLS alone, with a certificate. Each candidate knows them by a
// name with two addresses, of which the first accepts connections and stays silent. They have three servers. Kubernetes has two API
// servers, on three of etcd, and PostgreSQL a primary and a synchronous standby.
//
// The schedule of faults is drawn from a seed before the run, and printed. On the same
// coordinator, the same seed gives the same schedule. Each kind of fault comes once. Then
// faults come in bursts, drawn by their weights, until the time is over. Half of them are
// aimed at whoever leads at that moment. They last less than a session, about as long, or
// longer:
//
//   - candidates are paused, killed and started anew, cut off in one direction or in both,
//     refused, reset and slowed down; they resign, and are replaced in good order;
//   - servers, their leader as well as others, are paused, killed and started anew, one or a
//     majority, and isolated from each other;
//   - servers of the etcd below Kubernetes are paused and killed, one or a majority;
//   - the standby of PostgreSQL takes over, from a primary that is killed, or one that is paused and then serves on beside it; the
//     old primary becomes the standby of the new one;
//   - operators remove a leader's member, or end its session (not on ZooKeeper, where that
//     takes the session's password);
//   - the authority is replaced, with all certificates of both sides, and so is the secret: the password of etcd,
//     the ACL token of Consul, the digest of ZooKeeper with the ACLs of all znodes. The run makes sure that the
//     old ones are refused from then on. The two addresses of a candidate's name change places;
//   - a server is replaced by another with empty data, which operators have removed and added (on ZooKeeper, which knows
//     servers by their numbers, by one with the same number);
//   - members of an election are exported, and imported when some have left: by "consul kv import", with all that stands and the mark
//     of the line, and by raw copies of keys elsewhere. Such ghosts stand for half a session, and are removed by an operator. An
//     election of Consul also gets a mark from another cluster.
//
// After the schedule, every candidate must lead every election once more, end in good order,
// and leave nothing behind: no member in any line, and no process.
//
// # What is proved
//
// Package evidence judges the files, and nothing but the files:
//
//   - overlap, token, order, late: the rules of package history. Nothing is forgiven, not a
//     millisecond. A term counts from just before its leader first asked and was told that it
//     led, until just before the last time. This holds even for a process that was paused or
//     killed, and noted the end of its term late or not at all (package worker).
//   - vacancy: while a candidate that no fault touches stands in line, an election has a leader
//     at most a bound after the last fault that may prolong its vacancy. The bound is the time
//     after which the coordinator ends the session of a process that died, and five seconds for
//     everything else. The file onset.go of package evidence says which faults may prolong a
//     vacancy.
//   - told: a leader that an operator deposed ends its term within seconds of the
//     operator's answer, unless a fault keeps it from being told.
//   - lost: each write that was acknowledged is there in the end, in the store and in the
//     records. Each value of the counter names the one that it replaced, so that no write can
//     disappear unseen.
//   - invented: nothing is there that nobody wrote, or that was refused.
//   - regression: the store accepted no token smaller than one before.
//   - unfenced: no guarded write was accepted that began after the leader of a later term had
//     been told that it led.
//   - believed: nor did a check succeed then.
//   - linearizable: the guarded writes fit into one order that explains all answers, and
//     in which tokens do not fall (github.com/anishathalye/porcupine). A write without an
//     answer may have happened at any later time, or never.
//
// # What is not proved
//
// If the store refuses a late write, that is no violation: the leader was paused between its
// check and the write, and fencing is for that. After an operator took a leader's member
// away, its term is not held against others: the leader may be cut off and not know it.
// Clocks do not differ, as all processes run on one machine; TestDrift has those of candidates run fast or slow (package drift).
// Disks lose nothing: a server comes back with its data, unless operators replace it. Reads of the guarded records are not part of the proof: a
// coordinator may answer them with an old value, and a compare and set that was based on it
// fails.
//
// The same seed does not give the same run, because it does not decide when the kernel
// schedules which process.
//
// # What is left behind
//
// The folder of the run holds schedule.txt, history.jsonl with all notes, timeline.svg with
// their picture, summary.txt, and the files that package arena lists.
package chaos
