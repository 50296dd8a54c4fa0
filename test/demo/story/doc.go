// Package story is what krop is for, told in commands: a provider publishes a blueprint, consumers bind it and
// use it, what is wrong is refused, and everything is taken away again.
//
// It is one list of steps. Each is a kubectl command that a person could type, the exit code that it must have,
// and what must hold afterwards, read from the API and not from what was printed. make demo plays the list and
// shows it; the integration tests play the same list and fail where it does not hold.
package story
