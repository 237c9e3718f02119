// Package suite is the subcommand conformance: it exercises the rules of package
// conformance on the coordinator that --url names (target), and shows the results as they
// come. The hidden subcommand stand is a candidate of the suite in a process of its own.
package suite
