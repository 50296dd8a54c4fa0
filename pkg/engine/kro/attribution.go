package kro

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/kubernetes-sigs/kro/pkg/graph/fieldpath"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	namedResource   = regexp.MustCompile(`(?:resource|node|id) "?([a-z][a-zA-Z0-9]*)"?`)
	namedPath       = regexp.MustCompile(`(?:at )?path "((?:[^"\\]|\\.)+)"`)
	namedExpression = regexp.MustCompile(`(?:expression|condition|includeWhen|readyWhen) ("(?:[^"\\]|\\.)*")`)
)

// attributed makes an error of a field of an error of kro's builder that the diagnosis didn't find.
// kro's errors are text, which names resource, path and expression more often than not.
func (c *compilation) attributed(err error) *field.Error {
	text := err.Error()
	path := field.NewPath("spec")
	r := c.namedIn(text)
	switch {
	case r != nil:
		path = r.path
		if match := namedPath.FindStringSubmatch(text); match != nil {
			path = below(r.body(), match[1])
		}
	case strings.Contains(text, "status"), strings.Contains(text, "condition"):
		path = field.NewPath("spec", "schema", "status")
	case strings.Contains(text, "schema"):
		path = field.NewPath("spec", "schema")
	}
	var value any = field.OmitValueType{}
	if match := namedExpression.FindStringSubmatch(text); match != nil {
		if expression, err := strconv.Unquote(match[1]); err == nil {
			value = wrappedExpression(expression)
		}
	}
	return field.Invalid(path, value, prettyTypes(text))
}

func (c *compilation) namedIn(text string) *resource {
	for _, match := range namedResource.FindAllStringSubmatch(text, -1) {
		for _, r := range c.resources {
			if r.ID == match[1] {
				return r
			}
		}
	}
	return nil
}

// below is the field at kro's path.
func below(path *field.Path, krosPath string) *field.Path {
	segments, err := fieldpath.Parse(krosPath)
	if err != nil {
		return path
	}
	for _, segment := range segments {
		if segment.Index >= 0 {
			path = path.Index(segment.Index)
		} else {
			path = child(path, segment.Name)
		}
	}
	return path
}

func wrappedExpression(text string) string {
	if strings.Contains(text, "${") {
		return text
	}
	return "${" + text + "}"
}
