package process_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.opendefense.cloud/krop/test/testbed/process"
)

// parentOf has a process of this test binary play a test bed: it starts a child that logs to this file, and
// waits to be killed.
const parentOf = "TEST_PARENT_OF"

func TestMain(m *testing.M) {
	log := os.Getenv(parentOf)
	if log == "" {
		os.Exit(m.Run())
	}
	child, err := process.Start(process.Spec{Name: "sleep", Path: "sleep", Args: []string{"60"}, LogFile: log})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(child.PID())
	select {}
}

func TestAChildDiesWithAParentThatIsKilled(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentOf+"="+filepath.Join(t.TempDir(), "log"))
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var child int
	if _, err := fmt.Fscan(out, &child); err != nil {
		t.Fatal(err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out)
	_ = parent.Wait()
	for deadline := time.Now().Add(10 * time.Second); alive(child); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(child, syscall.SIGKILL)
			t.Fatal("the child has outlived its parent")
		}
	}
}

// alive says whether a process runs. One that nobody has waited for yet is dead all the same.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func TestStopEndsAProcessThatIgnoresIt(t *testing.T) {
	p := start(t, "trap '' TERM; echo trapped; while :; do sleep 0.1; done")
	ready := func(context.Context) error { return logged(p, "trapped") }
	if err := p.AwaitReady(context.Background(), time.Minute, ready); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(50 * time.Millisecond); err == nil {
		t.Error("that the process had to be killed is not told")
	}
	if p.Running() {
		t.Error("the process runs")
	}
}

func TestTheFailureOfAServerShowsTheEndOfItsLog(t *testing.T) {
	p := start(t, "echo no such flag >&2; exit 3")
	never := func(context.Context) error { return errors.New("connection refused") }
	err := p.AwaitReady(context.Background(), time.Minute, never)
	if err == nil || !strings.Contains(err.Error(), "no such flag") || !strings.Contains(err.Error(), "status 3") {
		t.Errorf("error is %v", err)
	}
}

func TestAServerThatIsNotReadyInTimeShowsItsAnswer(t *testing.T) {
	p := start(t, "sleep 60")
	answer := errors.New("etcd failed")
	err := p.AwaitReady(context.Background(), time.Millisecond, func(context.Context) error { return answer })
	if !errors.Is(err, answer) {
		t.Errorf("error is %v", err)
	}
}

func TestUsageCountsProcessorTimeAndMemory(t *testing.T) {
	p := start(t, "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo counted; sleep 60")
	ready := func(context.Context) error { return logged(p, "counted") }
	if err := p.AwaitReady(context.Background(), time.Minute, ready); err != nil {
		t.Fatal(err)
	}
	usage, err := p.Usage()
	if err != nil {
		t.Fatal(err)
	}
	if usage.CPU <= 0 || usage.CPU > time.Minute || usage.Memory < 100<<10 || usage.Memory > 1<<30 {
		t.Errorf("usage is %v", usage)
	}
}

func start(t *testing.T, script string) *process.Process {
	t.Helper()
	p, err := process.Start(process.Spec{
		Name: "script", Path: "/bin/sh", Args: []string{"-c", script}, LogFile: filepath.Join(t.TempDir(), "log"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func logged(p *process.Process, word string) error {
	content, err := os.ReadFile(p.LogFile())
	if err == nil && !strings.Contains(string(content), word) {
		err = fmt.Errorf("%q is not logged yet", word)
	}
	return err
}
