// Package apiserver is krop's HTTP server: options, handler chain, routes, authentication,
// authorization, discovery, probes and metrics.
//
// The way there is the usual one: Options -> Validate -> Config -> Complete -> New -> Run. The server is
// that of k8s.io/apiserver with its default handler chain. What is krop's own lies before and behind it:
//
//	withRoute        reads the escaped path once, refuses what could be read in two ways, strips
//	                 /services/krop/<export cluster>/<export>/clusters/<cluster>, takes tokens off
//	default chain    panics, audit, timeouts, TLS authentication (identities), bodies (arrivals), fair queues (fairness),
//	                 authorization (gatekeeper)
//	dispatch         probes and metrics | an export | another virtual workspace (forwarder)
//	access           is the export served, is the cluster bound to it, may this user do this there
//	handlers         those of k8s.io/apiserver, over the storage that the catalog names; discovery; OpenAPI
//
// Trust is decided once, in authentication, and kept in the type caller, which no header and no group
// can make. A shard's certificate, or a router that names a shard, may do what kcp forwards. Everybody
// else is a user, whom the workspace is asked about.
//
// Answers tell what is absent from what isn't known: 404 is given only once everything stored has been
// loaded, because kcp's garbage collector deletes on it. Before that, and whenever a binding or a right
// can't be told, it is 503 with Retry-After.
//
// Not promised: order among requests of one cluster, and limits on what is forwarded, which are kcp's.
package apiserver
