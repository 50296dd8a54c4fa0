package story

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"go.opendefense.cloud/krop/test/testbed"
)

// commandTimeout is twice the longest wait that a step asks kubectl for.
const commandTimeout = 2 * time.Minute

// Play plays chapters in order and returns the error of the first step that does not hold: what comes after
// would fail for its reason.
func Play(ctx context.Context, scene *Scene, audience Audience, chapters ...Chapter) error {
	for _, chapter := range chapters {
		audience.Chapter(chapter.Title)
		for _, step := range chapter.Steps {
			err := scene.play(ctx, step, audience)
			audience.Outcome(step, err)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", chapter.Title, typed(step), err)
			}
		}
	}
	return nil
}

// play runs the command of a step and checks what must hold after it.
func (s *Scene) play(ctx context.Context, step Step, audience Audience) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	var before state
	if step.Unchanged {
		var err error
		if before, err = s.state(ctx); err != nil {
			return err
		}
	}
	audience.Command(step, typed(step))
	output, code, err := s.run(ctx, step)
	if err != nil {
		return err
	}
	audience.Output(step, output)
	if step.Keep != "" {
		s.kept[step.Keep] = strings.TrimSpace(output.Stdout)
	}
	judged, held := step.judge(output, code), s.holds(ctx, step)
	return errors.Join(judged, held, s.unchanged(ctx, step, before))
}

// run runs the command of a step. That it fails is no error here.
func (s *Scene) run(ctx context.Context, step Step) (testbed.Output, int, error) {
	args := make([]string, len(step.Args))
	for i, arg := range step.Args {
		args[i] = s.expand(arg)
	}
	command := s.bed.Kubectl(step.As).Command(ctx, args...)
	command.Dir = s.checkout
	command.Env = append(command.Env, s.env...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	output := testbed.Output{Stdout: stdout.String(), Stderr: stderr.String()}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return output, 0, fmt.Errorf("run kubectl: %w", err)
	}
	return output, command.ProcessState.ExitCode(), nil
}

// judge checks exit code and output.
func (s Step) judge(output testbed.Output, code int) error {
	var errs []error
	if code != s.Code {
		errs = append(errs, fmt.Errorf("exit code %d, want %d: %s", code, s.Code, strings.TrimSpace(output.Stderr)))
	}
	for _, name := range s.Mentions {
		if !strings.Contains(output.Stdout+output.Stderr, name) {
			errs = append(errs, fmt.Errorf("%q is not mentioned in: %s%s", name, output.Stdout, output.Stderr))
		}
	}
	return errors.Join(errs...)
}

func (s *Scene) unchanged(ctx context.Context, step Step, before state) error {
	if !step.Unchanged {
		return nil
	}
	after, err := s.state(ctx)
	if err != nil {
		return err
	}
	return before.sameAs(after)
}

func (s *Scene) holds(ctx context.Context, step Step) error {
	if step.Holds == nil {
		return nil
	}
	return step.Holds(ctx, s)
}
