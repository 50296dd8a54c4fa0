package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Spec says what to run.
type Spec struct {
	// Name of the process in messages and of its log file.
	Name string
	// Path of the executable.
	Path string
	// Args are its arguments, without the executable.
	Args []string
	// Env is added to the environment.
	Env []string
	// Dir is where it runs.
	Dir string
	// LogFile takes its output, after what is there already.
	LogFile string
}

// Process is a child process that was started. It may be used concurrently.
type Process struct {
	spec   Spec
	cmd    *exec.Cmd
	exited chan struct{}
	err    error // set before exited is closed
}

// Start starts a child process.
func Start(spec Spec) (*Process, error) {
	log, err := openLog(spec.LogFile)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	p := &Process{spec: spec, exited: make(chan struct{})}
	p.cmd = exec.Command(spec.Path, spec.Args...)
	p.cmd.Dir = spec.Dir
	p.cmd.Env = append(os.Environ(), spec.Env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = attributes()
	started := make(chan error)
	go p.run(log, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	return p, nil
}

// run starts the child and waits for its end. It holds one thread all that time: Linux takes a child's parent
// to be the thread that forked it, and would kill the child at the end of that thread.
func (p *Process) run(log *os.File, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer func() { _ = log.Close() }()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	close(p.exited)
}

func openLog(file string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}

// Name is the name in the Spec.
func (p *Process) Name() string { return p.spec.Name }

// LogFile is the one in the Spec.
func (p *Process) LogFile() string { return p.spec.LogFile }

// PID is the process ID, which is also that of its group.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Exited is closed when the process has ended, by itself or not.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Running says whether the process has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// Stop asks the process to end, kills it if it hasn't within the time given, and returns when it has ended.
// It returns an error if it had to be killed.
func (p *Process) Stop(grace time.Duration) error {
	if !p.Running() {
		return nil
	}
	p.signal(syscall.SIGTERM)
	select {
	case <-p.exited:
		return nil
	case <-time.After(grace):
		p.Kill()
		return fmt.Errorf("%s did not end within %s and was killed", p.spec.Name, grace)
	}
}

// Kill ends the process at once, as kill -9 does, and returns when it has ended.
func (p *Process) Kill() {
	if p.Running() {
		p.signal(syscall.SIGKILL)
	}
	<-p.exited
}

// signal reaches the whole group. That the group is gone is no error: the process has ended.
func (p *Process) signal(s syscall.Signal) {
	_ = syscall.Kill(-p.PID(), s)
}

// Failure describes the end of a process that should still run, with the end of its log.
func (p *Process) Failure() error {
	<-p.exited
	how := "with exit code 0"
	if p.err != nil {
		how = "with " + p.err.Error()
	}
	return errors.New(p.spec.Name + " ended " + how + p.logTail())
}

// logLines is how much of a log a message shows: enough to see why a server gave up.
const logLines = 20

// logTail is the end of the log, set off for a message.
func (p *Process) logTail() string {
	lines, err := tail(p.spec.LogFile, logLines)
	if err != nil {
		return fmt.Sprintf("\n  (its log %s can't be read: %v)", p.spec.LogFile, err)
	}
	return "\n  the end of " + p.spec.LogFile + ":\n    " + strings.Join(lines, "\n    ")
}
