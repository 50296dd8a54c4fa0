// Package apiserver is krop's HTTP server: options, handler chain, routes, authentication,
// authorization, discovery, probes and metrics.
package apiserver
