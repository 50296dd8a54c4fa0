// Package planetest starts a real kube-apiserver over a real etcd, for tests of what acts on planes.
// A proxy in front of it serves the paths that kcp has, and can be told to fail.
package planetest
