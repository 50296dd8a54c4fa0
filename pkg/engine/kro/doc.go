// Package kro compiles blueprints with kro and evaluates their expressions. It is the only package
// that imports kro: everything else sees engine.Program.
//
// Compile runs in three steps. Structure (structure*.go, fields.go, kinds.go, literals.go) is what can be
// said without looking at an expression. Then kro's builder decides whether the blueprint compiles
// (build.go), and an API server's validation whether its kind can be served (crd.go, definition.go). If
// it doesn't, the diagnosis (diagnosis*.go) looks at every field and every expression by itself, since
// kro stops at the first error; what only kro finds is mapped from its text (attribution.go).
//
// No error hides another: what is wrong is taken out, or taken for something that can be anything, and
// what is left is looked at. TestErrors/layers has errors of all kinds in one blueprint.
//
// A pass (pass.go, render.go, status.go, conditions.go) evaluates what kro compiled. kro has a runtime
// for that, which is not used; graphProgram says why. paths.go and failure.go find out what an
// expression that can't be evaluated is lacking, and whether the instance lacks it or somebody else is
// to provide it.
//
// Expressions are tenants' and run in the server's write path. budget.go has every compiled program
// count what it does, metered.go makes calls pay before they are made, and prices.go says how much.
//
// Not promised: that a blueprint compiles with the next version of kro, or that errors keep their
// wording. Tests compare the package with kro's builder and runtime on kro's own examples.
package kro
