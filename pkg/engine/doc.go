// Package engine is krop's pure core: it turns a compiled blueprint (Program), an instance and what is
// observed of its children into a Plan, and a plan into inventory rows, names, marks and conditions.
// It has no client, no clock and no I/O, and knows kro only through the Graph interface.
package engine
