package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// measure is one thing to measure. Each stands for itself, so that it can be taken alone.
type measure struct {
	name string
	// engine measures without any server; servers with all of them. One of the two is set.
	engine  func(context.Context, size) error
	servers func(*bench, context.Context, size) error
}

// measures are what is measured, in this order: the engine first, as long as nothing else runs; and memory last, since
// it grows.
var measures = []measure{
	{name: "compile", engine: compiles},
	{name: "budgets", engine: budgets},
	{name: "plans", engine: plans},
	{name: "bare", servers: (*bench).bareCreates},
	{name: "composed", servers: (*bench).composedCreates},
	{name: "host", servers: (*bench).hostCreates},
	{name: "events", servers: (*bench).statusEvents},
	{name: "bursts", servers: (*bench).bursts},
	{name: "neighbours", servers: (*bench).neighbours},
	{name: "memory", servers: (*bench).memory},
	{name: "blueprints", servers: (*bench).blueprintMemory},
}

// choose is the measure of this name, or all.
func choose(only string) ([]measure, error) {
	if only == "" {
		return measures, nil
	}
	at := slices.IndexFunc(measures, func(m measure) bool { return m.name == only })
	if at < 0 {
		return nil, fmt.Errorf("there is no measure %q: %s", only, strings.Join(names(), ", "))
	}
	return measures[at : at+1], nil
}

func names() []string {
	all := make([]string, 0, len(measures))
	for _, m := range measures {
		all = append(all, m.name)
	}
	return all
}
