// Package budget is what tenants may ask of the server: every bound with its default, its reason and the
// answer of whoever goes over it, the words in which that is said, and the turns in which what is scarce is given out.
//
// A bound is declared once (bounds_*.go). The flags of `krop serve` are made of the declarations, and so is the
// table in docs/admin.md, which a test keeps true. Limits has the values that a server runs with; who enforces
// one asks it by the bound, and answers with Over, so that all of them say it in the same way:
//
//	over budget: children of the instance: 1700, at most 1500 are allowed (--max-children)
package budget
