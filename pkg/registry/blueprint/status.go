package blueprint

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
)

// compiledStatus is the status of a blueprint that has compiled and isn't published yet.
func compiledStatus(compiled *Compiled, generation int64) func(*v1alpha1.ResourceGraphDefinitionStatus) {
	return func(status *v1alpha1.ResourceGraphDefinitionStatus) {
		status.ExportedAPI = compiled.Program.Export.Name
		status.ObservedGeneration = generation
		status.PermissionClaims = compiled.Claims
		set(status, generation, compiledCondition(compiled))
		if status.ObservedSpecHash != compiled.Program.SpecHash {
			set(status, generation, condition(v1alpha1.ConditionPublished, metav1.ConditionUnknown, v1alpha1.ReasonPending, "about to be published"))
		}
		summarize(status, generation)
	}
}

func compiledCondition(compiled *Compiled) metav1.Condition {
	if compiled.Outdated == nil {
		return condition(v1alpha1.ConditionCompiled, metav1.ConditionTrue, v1alpha1.ReasonCompiled, "the blueprint compiles")
	}
	return condition(v1alpha1.ConditionCompiled, metav1.ConditionFalse, v1alpha1.ReasonCompileFailed,
		"it does not compile any more, since kinds that it uses have changed; instances are composed as it compiled last: "+compiled.Outdated.Error())
}

// publishedStatus is the status of a blueprint that its export offers.
func publishedStatus(compiled *Compiled, generation int64, identityHash string) func(*v1alpha1.ResourceGraphDefinitionStatus) {
	return func(status *v1alpha1.ResourceGraphDefinitionStatus) {
		compiledStatus(compiled, generation)(status)
		status.ObservedSpecHash = compiled.Program.SpecHash
		status.IdentityHash = identityHash
		set(status, generation, condition(v1alpha1.ConditionPublished, metav1.ConditionTrue, v1alpha1.ReasonPublished,
			"consumers can bind APIExport "+compiled.Program.Export.Name))
		serving := condition(v1alpha1.ConditionServing, metav1.ConditionUnknown, v1alpha1.ReasonNoBinding,
			"known once the export has been bound for the first time")
		if known := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionServing); known != nil {
			serving = *known // an edit changes nothing about how kcp routes the kind
		}
		set(status, generation, serving)
		summarize(status, generation)
	}
}

// failedStatus is the status of a blueprint of which one step failed.
func failedStatus(conditionType, reason string, generation int64, cause error) func(*v1alpha1.ResourceGraphDefinitionStatus) {
	return func(status *v1alpha1.ResourceGraphDefinitionStatus) {
		status.ObservedGeneration = generation
		set(status, generation, condition(conditionType, metav1.ConditionFalse, reason, budget.Cut(cause.Error(), 1)))
		summarize(status, generation)
	}
}

// servingStatus is the status after kcp was seen to route the kind to krop, or, with a failure, not to.
func servingStatus(failure error, generation int64) func(*v1alpha1.ResourceGraphDefinitionStatus) {
	return func(status *v1alpha1.ResourceGraphDefinitionStatus) {
		serving := condition(v1alpha1.ConditionServing, metav1.ConditionTrue, v1alpha1.ReasonServing, "kcp routes the kind to krop")
		if failure != nil {
			serving = condition(v1alpha1.ConditionServing, metav1.ConditionFalse, v1alpha1.ReasonNotRouted, failure.Error())
		}
		set(status, generation, serving)
		summarize(status, generation)
	}
}

// summarize sets Ready: false for the first step that is not true, except that Serving may be unknown
// as long as nobody has bound the export.
func summarize(status *v1alpha1.ResourceGraphDefinitionStatus, generation int64) {
	ready := condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonComplete, "compiled and published")
	for _, step := range []string{v1alpha1.ConditionCompiled, v1alpha1.ConditionPublished, v1alpha1.ConditionServing} {
		found := meta.FindStatusCondition(status.Conditions, step)
		if found == nil || found.Status == metav1.ConditionTrue {
			continue
		}
		if step == v1alpha1.ConditionServing && found.Status == metav1.ConditionUnknown {
			continue
		}
		ready = condition(v1alpha1.ConditionReady, metav1.ConditionFalse, found.Reason, found.Message)
		break
	}
	set(status, generation, ready)
}

// maxMessage is how long the message of a condition may be, as its schema says. The errors of a blueprint with
// hundreds of resources may be longer.
const maxMessage = 32768

func set(status *v1alpha1.ResourceGraphDefinitionStatus, generation int64, condition metav1.Condition) {
	condition.ObservedGeneration = generation
	if runes := []rune(condition.Message); len(runes) > maxMessage {
		condition.Message = string(runes[:maxMessage-1]) + "…"
	}
	meta.SetStatusCondition(&status.Conditions, condition)
}
