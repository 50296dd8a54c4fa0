// Package kro compiles blueprints with kro and evaluates their expressions. It is the only package
// that imports kro: everything else sees engine.Program.
package kro
