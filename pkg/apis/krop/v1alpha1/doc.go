// Package v1alpha1 holds krop's API: the ResourceGraphDefinition that a provider writes, what krop
// adds to the status of every instance, and the names (labels, annotations, finalizers, condition
// types and reasons) that other packages and users rely on. It imports nothing else of krop.
//
// +kubebuilder:object:generate=true
// +groupName=krop.opendefense.cloud
package v1alpha1
