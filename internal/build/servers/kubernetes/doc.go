// Package kubernetes pins the Kubernetes API server that client-go's leader election is
// measured on, in a module of its own: whoever uses the library sees none of its
// dependencies. Package internal/rig/coordtest builds it into a cache folder outside the
// tree, when it is first asked for.
//
// In k8s.io/kubernetes, the modules k8s.io/api and others stand in a folder of the same
// repository, with the version v0.0.0. The replace directives name the versions that are
// published together with it.
package kubernetes
