package engine

import (
	"fmt"
	"strconv"
	"strings"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// Explain says in a sentence what is awaited: which node is the reason, its plane and object, and what is
// missing there. Waiting itself is the short form, for machines.
func (p *Plan) Explain(waiting *Waiting) string {
	node := p.Node(waiting.Node)
	if node == nil {
		return waiting.Error()
	}
	switch {
	case waiting.Path != "":
		return node.lacks(waiting)
	case waiting.ReadyWhen:
		return fmt.Sprintf("%s is not ready: readyWhen %s does not hold", node.describe(waiting.Element), waiting.Expression)
	case waiting.Expression != "":
		return fmt.Sprintf("%s lacks something that expression %q reads", node.describe(""), waiting.Expression)
	case node.Err != nil:
		return node.describe("") + " has failed: " + node.failure()
	case waiting.Missing != "":
		return node.describe("") + " does not exist yet"
	case node.Unreadable != "":
		return node.describe("") + " can't be read: " + node.Unreadable
	case node.External:
		return node.describe("") + " has not been read yet"
	default:
		return node.describe("") + " is not written yet"
	}
}

// lacks names the field that is missing, and who reads it if that isn't plain.
func (n *NodePlan) lacks(waiting *Waiting) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is not set on %s yet", waiting.field(), n.object(waiting.Path))
	if waiting.Schemaless {
		b.WriteString(" (no schema declares it: check the spelling)")
	}
	if waiting.Expression != "" && waiting.Expression != waiting.field() {
		fmt.Fprintf(&b, "; expression %q reads it", waiting.Expression)
	}
	return b.String()
}

// failure is what went wrong with the node, without saying which one it is.
func (n *NodePlan) failure() string {
	unnamed := *n.Err
	unnamed.Node = ""
	return unnamed.Error()
}

func (n *NodePlan) describe(path string) string {
	return fmt.Sprintf("resource %q (%s)", n.ID, n.object(path))
}

// object names plane and object: consumer ConfigMap default/web. Of a list it is the element that the path
// starts with, and only the kind if it doesn't name one.
func (n *NodePlan) object(path string) string {
	about := fmt.Sprintf("%s %s", n.Target, n.GVK.Kind)
	if key := n.key(path); key.Name != "" {
		about += " " + objectName(key)
	}
	return about
}

func (n *NodePlan) key(path string) v1alpha1.ObjectKey {
	index := 0
	if n.Reference != nil && !n.Selects {
		return n.Reference.Object()
	}
	if n.Collection || n.Selects {
		number, _, ok := strings.Cut(strings.TrimPrefix(path, "["), "]")
		parsed, err := strconv.Atoi(number)
		if !ok || err != nil {
			return v1alpha1.ObjectKey{}
		}
		index = parsed
	}
	if n.Selects && index >= 0 && index < len(n.Found) {
		return v1alpha1.ObjectKey{Namespace: n.Found[index].GetNamespace(), Name: n.Found[index].GetName()}
	}
	if index < 0 || index >= len(n.Children) {
		return v1alpha1.ObjectKey{}
	}
	return n.Children[index].Key
}
