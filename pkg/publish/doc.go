// Package publish turns blueprints into what kcp needs to offer them: APIResourceSchema, APIExport,
// endpoint slice and claims; and it follows who has bound them. It is the only package that knows
// kcp's publishing types.
package publish
