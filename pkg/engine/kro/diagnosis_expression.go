package kro

import (
	"maps"
	"slices"

	"github.com/google/cel-go/cel"
	krocel "github.com/kubernetes-sigs/kro/pkg/cel"
	"github.com/kubernetes-sigs/kro/pkg/cel/conversion"
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
		} else if found.expression.OriginalTemplate != "" {
			d.noOmit(u, "omit() leaves out a whole field: expected it alone, found text beside it")
		}
		if output != nil {
			d.checkType(u, output, found.place)
		}
	}
	d.unusedAxes(r, used)
	d.booleans(r, "includeWhen", r.IncludeWhen, d.env, "")
	d.booleans(r, readyWhenRole, r.ReadyWhen, d.readyEnvironment(r), r.self())
}

// self is the name by which a resource's readyWhen knows it.
func (r *resource) self() string {
	if len(r.ForEach) > 0 {
		return graph.EachVarName
	}
	return r.ID
}

func (d *diagnosis) isIdentity(r *resource, path *field.Path) bool {
	metadata := r.body().Child("metadata")
	return path.String() == metadata.Child("name").String() || !r.selects() &&
		path.String() == metadata.Child("namespace").String() && (r.kind == nil || r.kind.Namespaced)
}

// readyEnvironment knows, for lists, the type of each.
func (d *diagnosis) readyEnvironment(r *resource) *cel.Env {
	if !r.isList() {
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

// readyWhenRole is the role of expressions that say whether what a resource is of is ready.
const readyWhenRole = "readyWhen"

func (d *diagnosis) booleans(r *resource, role string, texts []string, env *cel.Env, only string) {
	for i, text := range texts {
		path := r.path.Child(role).Index(i)
		expression, ok := d.unwrap(r, path, role, text)
		if !ok {
			continue
		}
		u := use{resource: r, path: path, expression: expression, env: env, role: role, only: only}
		if role == readyWhenRole && r.selects() {
			u.local = []string{graph.EachVarName}
		}
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
			values := schema != nil && s.index < 0 && schema.AdditionalProperties != nil
			if declared := declaration(schema, s); declared == nil && values {
				schema = schema.AdditionalProperties.Schema
			} else {
				schema = declared
			}
			if schema != nil && schema.Description == notUnderstoodMark {
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
