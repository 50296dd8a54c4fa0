package kro

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	krocel "github.com/kubernetes-sigs/kro/pkg/cel"
	"github.com/kubernetes-sigs/kro/pkg/cel/conversion"
	krolibrary "github.com/kubernetes-sigs/kro/pkg/cel/library"
	"github.com/kubernetes-sigs/kro/pkg/graph"
	"github.com/kubernetes-sigs/kro/pkg/graph/parser"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// use is one expression where it stands.
type use struct {
	resource   *resource // nil in the status
	path       *field.Path
	expression *krocel.Expression
	env        *cel.Env
	// role is what the expression is for, such as readyWhen; empty in templates.
	role string
	// only is the one name that the expression may read; empty if it may read any resource but its own.
	only string
	// local are names besides resources: forEach variables. siblings are those that can't be read,
	// since they are only being defined.
	local, siblings []string
}

// shown is an expression as the author wrote it.
func shown(e *krocel.Expression) string {
	if e.OriginalTemplate != "" {
		return e.OriginalTemplate
	}
	return "${" + e.Original + "}"
}

func (d *diagnosis) refuseUse(u use, message string) {
	d.refuse(field.Invalid(u.path, shown(u.expression), d.about(u.resource, u.role, message)))
}

// examine looks at all expressions of a resource.
func (d *diagnosis) examine(r *resource) {
	if r.object == nil {
		return
	}
	env, local := d.forEach(r)
	used := make(map[string]bool)
	for _, found := range d.templateExpressions(r) {
		u := use{resource: r, path: found.path, expression: found.expression, env: env, local: local}
		output, names := d.check(u)
		if d.isIdentity(r, found.path) {
			d.noOmit(u, "the name of a child can't be left out")
			for _, name := range names {
				used[name] = true
			}
		}
		if output != nil {
			d.checkType(u, output, found.place)
		}
	}
	for i, axis := range r.ForEach {
		for name := range axis {
			if !used[name] && d.canBeVariable(name) {
				d.refuse(field.Invalid(r.path.Child("forEach").Index(i).Child(name), name, d.about(r, "forEach",
					"expected the variable in metadata.name or metadata.namespace, without it the objects would have the same name")))
			}
		}
	}
	d.booleans(r, "includeWhen", r.IncludeWhen, d.env, "")
	d.booleans(r, "readyWhen", r.ReadyWhen, d.readyEnvironment(r), r.self())
}

// self is the name by which a resource's readyWhen knows it.
func (r *resource) self() string {
	if len(r.ForEach) > 0 {
		return graph.EachVarName
	}
	return r.ID
}

func (d *diagnosis) isIdentity(r *resource, path *field.Path) bool {
	metadata := r.path.Child("template", "metadata")
	return path.String() == metadata.Child("name").String() ||
		path.String() == metadata.Child("namespace").String() && (r.kind == nil || r.kind.Namespaced)
}

// readyEnvironment knows, for collections, the type of each.
func (d *diagnosis) readyEnvironment(r *resource) *cel.Env {
	if len(r.ForEach) == 0 {
		return d.env
	}
	if r.kind != nil {
		types := maps.Clone(d.types)
		types[graph.EachVarName] = r.kind.Schema
		if env, _, err := krocel.TypedEnvironmentWithProvider(types); err == nil {
			return env
		}
	}
	env, err := d.env.Extend(cel.Variable(graph.EachVarName, cel.DynType))
	if err != nil {
		return d.env
	}
	return env
}

// forEach checks the axes, and gives the environment in which their variables have types.
func (d *diagnosis) forEach(r *resource) (*cel.Env, []string) {
	var variables []cel.EnvOption
	var names []string
	for _, axis := range r.ForEach {
		names = append(names, slices.Sorted(maps.Keys(axis))...)
	}
	for i, axis := range r.ForEach {
		for _, name := range slices.Sorted(maps.Keys(axis)) {
			if !d.canBeVariable(name) {
				continue
			}
			element := d.axis(r, r.path.Child("forEach").Index(i).Child(name), axis[name], names)
			variables = append(variables, cel.Variable(name, element))
		}
	}
	env, err := d.env.Extend(variables...)
	if err != nil {
		return d.env, names
	}
	return env, names
}

func (d *diagnosis) canBeVariable(name string) bool {
	return lowerCamel.MatchString(name) && !reservedNames.Has(name) && d.byID[name] == nil
}

// axis is the type of a forEach variable, dyn if its expression has errors.
func (d *diagnosis) axis(r *resource, path *field.Path, text string, siblings []string) *cel.Type {
	expression, ok := d.unwrap(r, path, "forEach", text)
	if !ok {
		return cel.DynType
	}
	u := use{resource: r, path: path, expression: expression, env: d.env, role: "forEach", siblings: siblings}
	output, _ := d.check(u)
	if output == nil {
		return cel.DynType
	}
	element, err := krocel.ListElementType(output)
	if err != nil && output.Kind() != cel.DynKind {
		d.refuseUse(u, "expected a list, found "+typeName(output))
	}
	if element == nil {
		return cel.DynType
	}
	return element
}

// unwrap takes off the ${}.
func (d *diagnosis) unwrap(r *resource, path *field.Path, role, text string) (*krocel.Expression, bool) {
	expression := asExpression(text)
	if expression == nil {
		d.refuse(field.Invalid(path, text, d.about(r, role, "expected one expression in ${}")))
	}
	return expression, expression != nil
}

// asExpression is the expression in ${} that the text is, nil if it isn't one.
func asExpression(text string) *krocel.Expression {
	expressions, err := parser.UnwrapExpressions([]string{text})
	if err != nil || len(expressions) != 1 {
		return nil
	}
	return expressions[0]
}

func (d *diagnosis) booleans(r *resource, role string, texts []string, env *cel.Env, only string) {
	for i, text := range texts {
		path := r.path.Child(role).Index(i)
		expression, ok := d.unwrap(r, path, role, text)
		if !ok {
			continue
		}
		u := use{resource: r, path: path, expression: expression, env: env, role: role, only: only}
		output, names := d.check(u)
		if output == nil || conversion.IsBoolOrOptionalBool(output) || output.Kind() == cel.DynKind && (d.readsUntyped(names) || d.readsNotUnderstood(u)) {
			continue
		}
		d.refuseUse(u, "expected bool, found "+typeName(output))
	}
}

// readsUntyped says whether any of the names is of no known type, for an error of its own.
func (d *diagnosis) readsUntyped(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return d.types[name] == nil && name != graph.EachVarName })
}

// readsNotUnderstood says whether the expression reads a field that has an error of its own.
func (d *diagnosis) readsNotUnderstood(u use) bool {
	for _, chain := range paths(u.expression.Original) {
		schema := d.types[chain.root]
		for _, s := range chain.steps {
			if schema = declaration(schema, s); schema != nil && schema.Description == notUnderstoodMark {
				return true
			}
		}
	}
	return false
}

// check reports what is wrong with an expression as such. It returns the type of its result, nil if
// there are errors, and the names that it reads.
func (d *diagnosis) check(u use) (*cel.Type, []string) {
	before := len(d.errs)
	parsed, issues := u.env.Parse(u.expression.Original)
	if issues.Err() != nil {
		for _, issue := range issues.Errors() {
			d.refuseUse(u, "it doesn't parse: "+d.issueText(u, issue))
		}
		return nil, nil
	}
	names := d.names(u)
	if u.role != "" {
		d.noOmit(u, "omit() is only for templates")
	}
	if len(d.errs) > before {
		return nil, names
	}
	checked, issues := u.env.Check(parsed)
	if issues.Err() == nil {
		return checked.OutputType(), names
	}
	for _, issue := range issues.Errors() {
		d.refuseUse(u, d.issueText(u, issue))
	}
	return nil, names
}

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
		return "each is only for readyWhen of resources with forEach"
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
