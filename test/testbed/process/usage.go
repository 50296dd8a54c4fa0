package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Usage is what a process has used up, as /proc tells it.
type Usage struct {
	// CPU is the processor time since its start, in user and kernel mode, to a hundredth of a second.
	CPU time.Duration
	// Memory is what it has resident now, in bytes.
	Memory int64
}

const (
	// clockTick is the unit of processor times in /proc (USER_HZ, 100 on every architecture of Linux).
	clockTick = time.Second / 100
	// utimeField and rssField are the places of fields in /proc/<pid>/stat after the name in parentheses.
	utimeField, rssField = 11, 21
)

// Usage reads what the process has used. It works on Linux while the process runs.
func (p *Process) Usage() (Usage, error) {
	return usageOf(p.PID())
}

func usageOf(pid int) (Usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("read usage: %w", err)
	}
	// the name may hold spaces and parentheses itself; what follows the last one doesn't
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	var numbers [3]int64
	for i, field := range []int{utimeField, utimeField + 1, rssField} {
		if numbers[i], err = strconv.ParseInt(fields[field], 10, 64); err != nil {
			return Usage{}, fmt.Errorf("read usage: %w", err)
		}
	}
	return Usage{
		CPU:    time.Duration(numbers[0]+numbers[1]) * clockTick,
		Memory: numbers[2] * int64(os.Getpagesize()),
	}, nil
}
