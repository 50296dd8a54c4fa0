package testbed

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// kubectlGrace is what a kubectl that is told to end has for it.
const kubectlGrace = 5 * time.Second

// Kubectl runs kubectl as one user, in the user's workspace.
type Kubectl struct {
	bed  *Bed
	user User
}

// Kubectl returns the kubectl of a user.
func (b *Bed) Kubectl(user User) Kubectl {
	return Kubectl{bed: b, user: user}
}

// Output is what a command printed.
type Output struct {
	Stdout, Stderr string
}

// CommandError is returned for a command that ended with another code than 0.
type CommandError struct {
	// Command as one would type it.
	Command string
	// Code that it ended with, or -1 if a signal ended it.
	Code int
	Output
}

// Error shows the command and what it printed to stderr.
func (e *CommandError) Error() string {
	return fmt.Sprintf("%s: exit code %d: %s", e.Command, e.Code, strings.TrimSpace(e.Stderr))
}

// Run runs kubectl. The error is a *CommandError if kubectl ran and failed.
func (k Kubectl) Run(ctx context.Context, args ...string) (Output, error) {
	return k.RunWithInput(ctx, "", args...)
}

// Apply applies manifests that are given as text.
func (k Kubectl) Apply(ctx context.Context, manifests string, args ...string) (Output, error) {
	return k.RunWithInput(ctx, manifests, append([]string{"apply", "-f", "-"}, args...)...)
}

// RunWithInput runs kubectl with something to read from stdin.
func (k Kubectl) RunWithInput(ctx context.Context, stdin string, args ...string) (Output, error) {
	command := k.Command(ctx, args...)
	var stdout, stderr bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := command.Run()
	output := Output{Stdout: stdout.String(), Stderr: stderr.String()}
	if err == nil {
		return output, nil
	}
	if command.ProcessState == nil {
		return output, fmt.Errorf("run kubectl: %w", err)
	}
	typed := "kubectl " + strings.Join(args, " ")
	return output, &CommandError{Command: typed, Code: command.ProcessState.ExitCode(), Output: output}
}

// Command is a kubectl to start, for what Run can't do, such as watching. It ends with the context.
func (k Kubectl) Command(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, k.bed.options.binary(kubectlBinary), args...)
	command.WaitDelay = kubectlGrace
	// ports are used again by other test beds: what was discovered there must not be believed here
	command.Env = append(os.Environ(), "KUBECONFIG="+k.bed.Kubeconfig(k.user), "KUBECACHEDIR="+k.bed.layout.data("kubectl"))
	return command
}
