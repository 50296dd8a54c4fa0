package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of krop's own API.
var GroupVersion = schema.GroupVersion{Group: "krop.opendefense.cloud", Version: "v1alpha1"}

// Target names the plane on which a resource of a blueprint lives.
//
// +kubebuilder:validation:Enum=consumer;provider;host
type Target string

const (
	// TargetConsumer is the workspace of the consumer that owns the instance.
	TargetConsumer Target = "consumer"
	// TargetProvider is the workspace in which the blueprint lives.
	TargetProvider Target = "provider"
	// TargetHost is the host cluster that krop was started with.
	TargetHost Target = "host"
)

// ConflictPolicy says what to do about an object that exists and isn't the instance's.
//
// +kubebuilder:validation:Enum=Fail;Adopt
type ConflictPolicy string

const (
	// ConflictFail refuses the write with 409.
	ConflictFail ConflictPolicy = "Fail"
	// ConflictAdopt takes the object over if it carries no owner's mark.
	ConflictAdopt ConflictPolicy = "Adopt"
)

// DeletionPolicy says what happens to a child that its instance no longer wants.
//
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionPolicy string

const (
	// DeletionDelete deletes the child.
	DeletionDelete DeletionPolicy = "Delete"
	// DeletionOrphan leaves the child and takes krop's marks off it.
	DeletionOrphan DeletionPolicy = "Orphan"
)

// ResourceGraphDefinition is a blueprint: it describes a kind of API and the resources that every
// instance of that kind is composed of. krop compiles it when it is applied, refuses it with all of
// its errors if it does not compile, and publishes it as an APIExport of the same workspace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,path=resourcegraphdefinitions,singular=resourcegraphdefinition,shortName=rgd,categories=krop
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.schema.kind`
// +kubebuilder:printcolumn:name="Export",type=string,JSONPath=`.status.exportedAPI`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ResourceGraphDefinition struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the provider wants to offer.
	//
	// +kubebuilder:validation:Required
	Spec ResourceGraphDefinitionSpec `json:"spec"`

	// status is what krop made of it.
	//
	// +optional
	Status ResourceGraphDefinitionStatus `json:"status,omitempty"`
}

// ResourceGraphDefinitionList is a list of blueprints.
//
// +kubebuilder:object:root=true
type ResourceGraphDefinitionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceGraphDefinition `json:"items"`
}

// ResourceGraphDefinitionSpec is kro's language, plus a target and two policies per resource.
type ResourceGraphDefinitionSpec struct {
	// schema defines the kind that consumers use: its names, its fields, its status.
	//
	// +kubebuilder:validation:Required
	Schema *Schema `json:"schema,omitempty"`

	// resources are the objects that an instance is composed of. They may refer to each other with
	// ${id.path} expressions, which also gives the order in which they are written.
	//
	// +optional
	// +listType=map
	// +listMapKey=id
	Resources []Resource `json:"resources,omitempty"`
}

// Scope says whether instances live in namespaces.
//
// +kubebuilder:validation:Enum=Namespaced;Cluster
type Scope string

const (
	// ScopeNamespaced instances live in a namespace of the consumer's workspace.
	ScopeNamespaced Scope = "Namespaced"
	// ScopeCluster instances live in the consumer's workspace itself.
	ScopeCluster Scope = "Cluster"
)

// Schema describes the published kind in kro's SimpleSchema.
type Schema struct {
	// kind is the name of the published kind, in PascalCase. Immutable.
	//
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:Pattern=`^[A-Z][a-zA-Z0-9]{0,62}$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="kind is immutable"
	Kind string `json:"kind,omitempty"`

	// apiVersion is the version of the published kind, such as v1alpha1. Immutable.
	//
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:Pattern=`^v[0-9]+(alpha[0-9]+|beta[0-9]+)?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="apiVersion is immutable"
	APIVersion string `json:"apiVersion,omitempty"`

	// group is the API group of the published kind. Immutable.
	//
	// +optional
	// +kubebuilder:default="kro.run"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="group is immutable"
	Group string `json:"group,omitempty"`

	// scope is Namespaced or Cluster. Immutable.
	//
	// +optional
	// +kubebuilder:default="Namespaced"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="scope is immutable"
	Scope Scope `json:"scope,omitempty"`

	// spec describes the fields that a consumer sets, in SimpleSchema:
	// {"size": "integer | default=1 minimum=1"}.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Spec runtime.RawExtension `json:"spec,omitempty"`

	// types are reusable SimpleSchema types that spec can name.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Types runtime.RawExtension `json:"types,omitempty"`

	// status describes the fields that krop fills in, each a ${} expression over the resources:
	// {"endpoint": "${server.status.endpoint}"}.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Status runtime.RawExtension `json:"status,omitempty"`

	// additionalPrinterColumns are the columns of kubectl get. If set, krop's default columns are left out.
	//
	// +optional
	AdditionalPrinterColumns []apiextensionsv1.CustomResourceColumnDefinition `json:"additionalPrinterColumns,omitempty"`

	// shortNames are aliases of the kind for kubectl.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	// +listType=set
	ShortNames []string `json:"shortNames,omitempty"`

	// categories are groups of kinds that kubectl get can name, such as "all".
	//
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	// +listType=set
	Categories []string `json:"categories,omitempty"`

	// metadata is set on the published schema.
	//
	// +optional
	Metadata *SchemaMetadata `json:"metadata,omitempty"`
}

// SchemaMetadata is set on the published APIResourceSchema.
type SchemaMetadata struct {
	// labels of the published schema.
	//
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations of the published schema.
	//
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Resource is one node of the graph: an object that krop writes, or one that it only reads.
//
// +kubebuilder:validation:XValidation:rule="has(self.template) != has(self.externalRef)",message="exactly one of template or externalRef must be set"
type Resource struct {
	// The engine fills in defaults, and not the schema: kubectl apply compares lists as a whole, and would
	// take a value that the server has filled in for a difference, each time.

	// id names the resource in expressions: ${id.status.field}. lowerCamelCase, unique in the blueprint.
	//
	// +kubebuilder:validation:Required
	ID string `json:"id"`

	// target is the plane on which the resource lives: the consumer's workspace (the default), the
	// provider's workspace, or the host cluster.
	//
	// +optional
	Target Target `json:"target,omitempty"`

	// conflictPolicy says what to do if the object exists already and is not this instance's:
	// Fail (the default) refuses the write, Adopt takes the object over if nobody owns it.
	//
	// +optional
	ConflictPolicy ConflictPolicy `json:"conflictPolicy,omitempty"`

	// deletionPolicy says what happens to the object when the instance no longer wants it:
	// Delete (the default) or Orphan, which leaves it in place.
	//
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// template is the object to write. Any string in it may hold ${} expressions.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Template runtime.RawExtension `json:"template,omitempty"`

	// externalRef is an object to read. krop never writes, labels or deletes it.
	//
	// +optional
	ExternalRef *ExternalRef `json:"externalRef,omitempty"`

	// readyWhen are ${} expressions over this resource that must all be true before resources that
	// depend on it are written. Without any, the resource is ready as soon as it exists.
	//
	// +optional
	ReadyWhen []string `json:"readyWhen,omitempty"`

	// includeWhen are ${} expressions that must all be true for the resource to exist.
	//
	// +optional
	IncludeWhen []string `json:"includeWhen,omitempty"`

	// forEach turns the resource into a collection: one object for every combination of the values.
	// Each entry maps one variable name to a ${} expression that gives a list.
	//
	// +optional
	ForEach []ForEachDimension `json:"forEach,omitempty"`
}

// ForEachDimension maps one variable name to an expression that gives a list.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type ForEachDimension map[string]string

// ExternalRef names an object, or selects objects, that exist independently of the instance.
type ExternalRef struct {
	// apiVersion of the object, such as v1 or apps/v1.
	//
	// +kubebuilder:validation:Required
	APIVersion string `json:"apiVersion"`

	// kind of the object.
	//
	// +kubebuilder:validation:Required
	Kind string `json:"kind"`

	// metadata says which object, or which objects.
	//
	// +kubebuilder:validation:Required
	Metadata ExternalRefMetadata `json:"metadata"`
}

// ExternalRefMetadata has either a name or a selector.
type ExternalRefMetadata struct {
	// name of the object. May hold ${} expressions. Excludes selector.
	//
	// +optional
	Name string `json:"name,omitempty"`

	// namespace of the object; by default the instance's. With a selector, empty means all namespaces.
	//
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// selector picks objects by label: a label selector, or one ${} expression that gives one. Excludes name.
	//
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Selector runtime.RawExtension `json:"selector,omitempty"`
}

// PermissionClaim is one thing that a consumer is asked to let krop do in its workspace.
type PermissionClaim struct {
	// group of the claimed resource; empty for the core group.
	//
	// +optional
	Group string `json:"group,omitempty"`

	// resource is the plural name of the claimed resource.
	Resource string `json:"resource"`

	// identityHash tells apart two APIs of one name. Empty for built-in types.
	//
	// +optional
	IdentityHash string `json:"identityHash,omitempty"`

	// verbs that krop needs.
	//
	// +listType=set
	Verbs []string `json:"verbs"`
}

// ResourceGraphDefinitionStatus is what krop made of a blueprint.
type ResourceGraphDefinitionStatus struct {
	// exportedAPI is the name of the APIExport that consumers bind.
	//
	// +optional
	ExportedAPI string `json:"exportedAPI,omitempty"`

	// identityHash is the identity of that export.
	//
	// +optional
	IdentityHash string `json:"identityHash,omitempty"`

	// observedSpecHash is the hash of the spec that is being served.
	//
	// +optional
	ObservedSpecHash string `json:"observedSpecHash,omitempty"`

	// observedGeneration is the generation that the conditions speak of.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// permissionClaims are what a consumer is asked to accept when it binds.
	//
	// +optional
	// +listType=atomic
	PermissionClaims []PermissionClaim `json:"permissionClaims,omitempty"`

	// conditions: Compiled, Published, Serving, Ready.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
