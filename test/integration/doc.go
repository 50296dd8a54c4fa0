// Package integration runs krop against a real kcp and a real kube-apiserver, and looks at it as its users do:
// through kubectl and client-go, in the workspaces of providers and consumers.
//
// One test bed serves the package, with the resync of krop's loop at one hour: what these tests see happen
// happens because of an event. Each test works in workspaces of its own, apart from the story, which has those
// that the test bed comes with.
package integration
