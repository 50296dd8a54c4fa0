// Package architecture holds the rules of the repository that a compiler does not check: who may import
// whom, that every package says what it is for, and that main stays small. They are tests, and each rule
// carries its reason, so that a failure explains itself.
package architecture
