// Package succession is the root of a library that elects one leader among many
// processes, on ZooKeeper, etcd, Consul, or the kernel of one machine. It has no code:
//
//   - elect is what applications import: elections, terms, observers.
//   - backend opens a coordinator by its URL, and is the contract between elect and the
//     drivers. Its package comment has the glossary of the project.
//   - zookeeper, etcd, consul and local are the drivers. A program links only those that
//     it imports.
//   - memory is a driver for tests: a coordinator inside the process, with faults on
//     demand.
//   - conformance checks whether a driver, and a coordinator, keep the contract.
//   - migrate moves a live election from one coordinator to another.
//   - spread has each election on one of several clusters, by its name.
//   - cmd/succession is the command.
//
// Packages elect, backend, memory, conformance, migrate and spread import the standard library
// only. The rest of the tree, and how it is tested, is in CONTRIBUTING.md.
package succession
