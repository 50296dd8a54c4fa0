// Package etcd makes k8s.io/apiserver's storage aware of logical clusters: keys, watch cache, the
// embedded server and the client.
package etcd
