// Package registry holds what krop stores and serves: the catalog of served exports, and below it
// etcd keys and caches (etcd), what is known of a kind (kind), and the REST storage of instances
// (instance) and of blueprints (blueprint).
package registry
