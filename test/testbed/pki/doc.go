// Package pki issues the certificates of the test bed and keeps them in a folder, so that whoever starts a
// test bed there again gets the same ones.
//
// There is one authority per kind of trust, since a server that trusts one of them must not by that trust
// another: who may speak for himself in kcp (Client), who may speak for others (RequestHeader), who is known
// to the host cluster (HostClient), whom servers are recognised by (Serving), and the host's etcd (Etcd).
package pki
