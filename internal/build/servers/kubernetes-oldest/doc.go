// Package oldest pins the API server of the oldest Kubernetes that package kubernetes works with; see the folder kubernetes beside it.
package oldest
