package blueprint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// explained adds to what the blueprint's schema refuses what the compiler would have refused next, so
// that an author learns of everything at once.
func (w *write) explained(ctx context.Context, object *unstructured.Unstructured, refusal error) error {
	if w.examined || object == nil || !apierrors.IsInvalid(refusal) {
		return refusal
	}
	blueprint, err := decode(object)
	if err != nil || blueprint.Spec.Schema == nil {
		return refusal
	}
	_, err = w.rest.compiler.Compile(ctx, w.key.Cluster, blueprint)
	if !apierrors.IsInvalid(err) {
		return refusal
	}
	return merged(blueprint.Name, causesOf(refusal), causesOf(err))
}

// merged is one Invalid Status with the causes of both. Where the schema has refused a field, the
// compiler has nothing to add: its findings there are the same, or follow from that.
func merged(name string, schema, compiler []metav1.StatusCause) error {
	slices.SortStableFunc(schema, func(a, b metav1.StatusCause) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
	})
	causes := slices.Compact(schema)
	for _, cause := range compiler {
		if !slices.ContainsFunc(schema, func(other metav1.StatusCause) bool { return other.Field == cause.Field }) {
			causes = append(causes, cause)
		}
	}
	messages := make([]string, 0, len(causes))
	for _, cause := range causes {
		messages = append(messages, cause.Field+": "+cause.Message)
	}
	refusal := invalid(name, nil)
	refusal.ErrStatus.Message += fmt.Sprintf(": [%s]", strings.Join(messages, ", "))
	refusal.ErrStatus.Details.Causes = causes
	return refusal
}

func causesOf(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return slices.Clone(status.Status().Details.Causes)
}
