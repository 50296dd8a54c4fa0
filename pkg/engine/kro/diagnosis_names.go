package kro

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	krolibrary "github.com/kubernetes-sigs/kro/pkg/cel/library"
	"github.com/kubernetes-sigs/kro/pkg/graph"
)

func (d *diagnosis) noOmit(u use, message string) {
	if inspection, err := d.inspector.Inspect(u.expression.Original); err == nil && inspection.UsesOmit() {
		d.refuseUse(u, message)
	}
}

// names are the names that an expression reads. Those that it can't read are refused.
func (d *diagnosis) names(u use) []string {
	inspection, err := d.inspector.Inspect(u.expression.Original)
	if err != nil {
		d.refuseUse(u, err.Error())
		return nil
	}
	names := make(map[string]bool)
	for _, known := range inspection.ResourceDependencies {
		names[known.ID] = true
	}
	for _, unknown := range inspection.UnknownResources {
		names[unknown.ID] = true
	}
	sorted := slices.Sorted(maps.Keys(names))
	for _, name := range sorted {
		if message := d.unreadable(u, name); message != "" {
			d.refuseUse(u, message)
		}
	}
	for _, function := range inspection.UnknownFunctions {
		d.refuseUse(u, fmt.Sprintf("unknown function %q", function.Name))
	}
	return sorted
}

// unreadable says why an expression can't read a name, and notes the dependency if it can.
func (d *diagnosis) unreadable(u use, name string) string {
	switch {
	case slices.Contains(u.local, name):
		return ""
	case slices.Contains(u.siblings, name):
		return fmt.Sprintf("can't read %q: the variables of a forEach are independent", name)
	case u.only != "":
		if name != u.only {
			return fmt.Sprintf("expected only %q to be read, found %q", u.only, name)
		}
		return ""
	case name == graph.SchemaVarName:
		return ""
	case name == krolibrary.RuntimeVarName:
		if u.role == "status condition" {
			return ""
		}
		return "runtime is only for conditions in the status"
	case name == graph.EachVarName:
		return "each is only for readyWhen of resources with forEach or a selector"
	case u.resource != nil && name == u.resource.ID:
		return "a resource can't read itself"
	case d.byID[name] != nil:
		d.depend(u, name)
		return ""
	case d.isMisnamed(name):
		return ""
	default:
		return fmt.Sprintf("unknown resource %q, expected one of %s", name, strings.Join(d.readableNames(u), ", "))
	}
}

func (d *diagnosis) depend(u use, name string) {
	if u.resource != nil && d.byID[u.resource.ID] == u.resource && !slices.Contains(d.dependencies[u.resource.ID], name) {
		d.dependencies[u.resource.ID] = append(d.dependencies[u.resource.ID], name)
	}
}

// isMisnamed says whether a resource has this id and was refused for it.
func (d *diagnosis) isMisnamed(name string) bool {
	return slices.ContainsFunc(d.resources, func(r *resource) bool { return r.ID == name })
}

func (d *diagnosis) readableNames(u use) []string {
	names := append([]string{graph.SchemaVarName}, u.local...)
	for _, r := range d.resources {
		if r != u.resource && d.byID[r.ID] == r {
			names = append(names, r.ID)
		}
	}
	if len(names) > maxSuggestions {
		names = append(names[:maxSuggestions], "…")
	}
	return names
}
