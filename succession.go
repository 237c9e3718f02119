// Package succession is the root of a library that elects a leader among many
// processes, on a coordinator chosen by configuration. It has no code of its own:
//
//   - elect is what applications import: elections, terms, observers.
//   - backend is the contract between an election and a coordinator, and opens a
//     coordinator by its URL.
//   - zookeeper, etcd, consul and local are coordinators, the last one being the
//     kernel of this machine.
//   - memory is a coordinator inside the process, with faults on demand, for tests.
//   - conformance checks whether a backend keeps the contract.
//   - migrate moves a live election from one coordinator to another.
//   - cmd/succession is the command.
//   - internal/rig/coordtest starts the real coordinators that tests run against; tools
//     and servers are modules of their own, which users of the library never see.
//
// Elections import the standard library only, and a program links only the
// coordinators that it imports: deps_test.go sees to both.
package succession
