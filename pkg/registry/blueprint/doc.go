// Package blueprint is the REST storage of ResourceGraphDefinitions: compiled before they are
// stored, published before the request is answered.
package blueprint
