package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Benchmarks that need kro itself are in the one package that may know it. They call krop and what is beside it by
// turns, some hundred times, and report the medians and their ratio.
const (
	enginePackage = "go.opendefense.cloud/krop/pkg/engine/kro"
	turns         = "300x"
)

// compiles compares krop's compiler to kro's own builder, on the same blueprints.
func compiles(ctx context.Context, _ size) error {
	return engineRatios(ctx, "Compile beside kro's own builder", "BenchmarkBuilder", 1.1)
}

// budgets compares plans with budgets to plans without.
func budgets(ctx context.Context, _ size) error {
	return engineRatios(ctx, "Plans with budgets beside those without", "BenchmarkBudgets", 1.3)
}

// engineRatios runs one of the engine's benchmarks and prints its ratios for people to read.
func engineRatios(ctx context.Context, title, benchmark string, aim float64) error {
	command := exec.CommandContext(ctx, "go", "test", enginePackage, "-run=^$", "-bench=^"+benchmark+"$", "-benchtime="+turns)
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", command, err, output)
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tkrop\tbeside\tratio of p50\t")
	found := false
	for lines := bufio.NewScanner(bytes.NewReader(output)); lines.Scan(); {
		what, isResult := strings.CutPrefix(lines.Text(), benchmark+"/")
		if !isResult {
			continue
		}
		found = true
		fields := strings.Fields(what)
		values, err := metrics(fields[2:])
		if err != nil {
			return fmt.Errorf("%s: %q: %w", benchmark, lines.Text(), err)
		}
		fmt.Fprintf(table, "%s\t%.0f µs\t%.0f µs\t%s\t\n", nameOf(fields[0]), values["krop-µs"], values["bare-µs"], judged(values["ratio"], aim))
	}
	if !found {
		return errors.New(benchmark + " reports nothing")
	}
	fmt.Printf("\n%s\n", title)
	return table.Flush()
}

// metrics reads what follows the number of runs in a line of a benchmark: values, each with its unit.
func metrics(fields []string) (map[string]float64, error) {
	values := make(map[string]float64, len(fields)/2)
	for i := 0; i+1 < len(fields); i += 2 {
		value, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return nil, err
		}
		values[fields[i+1]] = value
	}
	return values, nil
}

// nameOf is the name of a benchmark in words. What ends it says how many processors there were.
func nameOf(benchmark string) string {
	if at := strings.LastIndexByte(benchmark, '-'); at >= 0 {
		benchmark = benchmark[:at]
	}
	return strings.ReplaceAll(benchmark, "_", " ")
}

// judged is a ratio beside its aim.
func judged(ratio, aim float64) string {
	verdict := ""
	if ratio > aim {
		verdict = ", missed"
	}
	return fmt.Sprintf("%.2f (aim: at most %.1f%s)", ratio, aim, verdict)
}
