package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// awaited is one thing that children wait for.
type awaited struct {
	message string
	// by are the ids of the resources that wait for it, without the one that lacks it.
	by []string
}

// reasonsOf says what children that are not written or not ready wait for: each reason once, and first those that
// others wait for too.
func reasonsOf(rows []v1alpha1.ComposedResource) []string {
	var order []*awaited
	known := map[string]*awaited{}
	incomplete := unwritten(rows)
	for _, row := range rows {
		if row.State == v1alpha1.StateApplied && row.WaitingFor == "" && incomplete[row.ID] {
			continue
		}
		message := reasonOf(row)
		reason := cmp.Or(known[row.WaitingFor], known[message])
		if reason == nil {
			reason = &awaited{message: message}
			order = append(order, reason)
		}
		known[message] = reason
		if row.WaitingFor != "" {
			known[row.WaitingFor] = reason
		}
		if row.WaitingFor != "" && !lacks(row) && !slices.Contains(reason.by, row.ID) {
			reason.by = append(reason.by, row.ID)
		}
	}
	slices.SortStableFunc(order, func(a, b *awaited) int { return min(len(b.by), 1) - min(len(a.by), 1) })
	messages := make([]string, 0, len(order))
	for _, reason := range order {
		messages = append(messages, reason.String())
	}
	return messages
}

// unwritten are the ids of resources that have children which are not written yet. What is wrong with the others
// of a list is that it isn't whole.
func unwritten(rows []v1alpha1.ComposedResource) map[string]bool {
	ids := map[string]bool{}
	for _, row := range rows {
		if row.State == v1alpha1.StatePending {
			ids[row.ID] = true
		}
	}
	return ids
}

// String is the reason, and who waits for it.
func (a *awaited) String() string {
	if len(a.by) == 0 {
		return a.message
	}
	named := make([]string, 0, maxListed)
	for _, id := range a.by[:min(len(a.by), maxListed)] {
		named = append(named, fmt.Sprintf("%q", id))
	}
	if more := len(a.by) - len(named); more > 0 {
		named = append(named, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("%s (awaited by %s)", a.message, strings.Join(named, ", "))
}

// reasonOf is what a row waits for, as a sentence. Rows that were stored by an older krop have none.
func reasonOf(row v1alpha1.ComposedResource) string {
	switch {
	case row.WaitingFor == "" && row.State == v1alpha1.StateApplied:
		return describe(row) + " is not ready"
	case row.WaitingFor == "" && (row.Message == "" || row.Message == NotWrittenYet || row.State == v1alpha1.StateUnverified):
		return describe(row) + " is not written yet"
	case row.WaitingFor == "":
		return describe(row) + " " + row.Message
	case row.Message == "" || row.Message == NotWrittenYet:
		return describe(row) + " waits for " + row.WaitingFor
	default:
		return row.Message
	}
}

// lacks says whether what the row waits for is something of its own node.
func lacks(row v1alpha1.ComposedResource) bool {
	after, ok := strings.CutPrefix(row.WaitingFor, row.ID)
	return ok && (after == "" || strings.ContainsAny(after[:1], ".[ "))
}

// describe names node, plane and object: resource "config" (consumer ConfigMap default/web).
func describe(row v1alpha1.ComposedResource) string {
	object := fmt.Sprintf("%s %s", row.Target, row.Kind)
	if row.Name != "" {
		object += " " + objectName(row.Key())
	}
	return fmt.Sprintf("resource %q (%s)", row.ID, object)
}
