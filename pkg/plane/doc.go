// Package plane is one interface over the three planes that take children: the consumer's workspace
// (through the export's virtual workspace), the provider's workspace and the host cluster. Which
// identity a write uses is decided here and nowhere else.
package plane
