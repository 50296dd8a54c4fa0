// Package testbed runs krop against a real kcp and a real kube-apiserver on this machine. It is the one
// harness: make playground, make demo, make bench and the integration tests all start theirs through it.
//
//	bed, err := testbed.Start(ctx, testbed.Options{})
//	if err != nil { ... }
//	defer bed.Stop()
//	out, err := bed.Kubectl(testbed.Provider).Run(ctx, "apply", "-f", "blueprint.yaml")
//
// What runs are child processes (package process), each known to the others by certificates of this test bed
// alone (package pki), all on the loopback interface. By default these are the two processes kcp and krop:
//
//	kubectl ──> kcp (shard, with its virtual workspaces) ──/services/krop/...──> krop ──> kcp, host
//
// With [Production] they are the six that a kcp installation has:
//
//	kubectl ──> front-proxy ──> shard ──> router ──/services/krop/──> krop
//	                                             └─/services/──────> virtual-workspaces
//
// The host is a kube-apiserver with an etcd inside this process. It has no controllers: objects stay as they
// are written, and a namespace that is deleted stays terminating.
//
// Not promised: that two test beds in one folder exclude each other on file systems without locks, and that
// the data of a folder outlives a crash of the machine when it was written by a test.
package testbed
