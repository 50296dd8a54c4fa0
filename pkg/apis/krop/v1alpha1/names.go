package v1alpha1

// Marks on every child, on every plane. Ownership is the pair of consumer cluster and instance UID
// together with the child's recorded UID; a label alone never justifies a write or a delete.
const (
	// LabelInstanceUID holds the UID of the instance that a child belongs to.
	LabelInstanceUID = "krop.opendefense.cloud/instance-uid"
	// LabelConsumerCluster holds the logical cluster of that instance.
	LabelConsumerCluster = "krop.opendefense.cloud/consumer-cluster"
	// LabelBlueprint holds the name of the blueprint, hashed if it is longer than a label may be.
	LabelBlueprint = "krop.opendefense.cloud/blueprint"
	// LabelNode holds the id of the child's node in the blueprint.
	LabelNode = "krop.opendefense.cloud/node"
	// LabelProviderCluster holds the logical cluster of the blueprint's workspace. It tells apart, on a host
	// that providers or several krops share, whose blueprint of a name a child is of.
	LabelProviderCluster = "krop.opendefense.cloud/provider-cluster"
	// LabelInstallation holds, on children on a host, which krop has written them: several may share a host, and
	// clusters of different kcps may have one name.
	LabelInstallation = "krop.opendefense.cloud/installation"
)

const (
	// AnnotationConsumerCluster is what CEL sees of the consumer's logical cluster, under
	// schema.metadata.annotations. It is stamped on a copy that is never stored.
	AnnotationConsumerCluster = "krop.opendefense.cloud/consumer-cluster"
	// AnnotationDesiredHash, on a child, is the hash of the object that was last applied. While it
	// equals the hash of what is wanted, and what is wanted is still there, nothing has to be written.
	AnnotationDesiredHash = "krop.opendefense.cloud/desired-hash"
	// AnnotationDepth, on a child of a nested instance, says how deep it is nested. Children of other instances
	// are at depth 1, and don't say so.
	AnnotationDepth = "krop.opendefense.cloud/depth"
	// AnnotationForceDelete, on a blueprint, lets it be deleted while instances exist.
	AnnotationForceDelete = "krop.opendefense.cloud/force-delete"
	// AnnotationAllowBreaking, on a blueprint, lets an edit of its schema pass that breaks what consumers have. It is
	// kro's, so that blueprints that have it mean the same here.
	AnnotationAllowBreaking = "kro.run/allow-breaking-changes"
	// AnnotationOrphanChildren, on an instance that is being deleted, says that its children in the consumer's
	// workspace are to stay. krop sets it where a deletion asks for propagationPolicy Orphan; clients can't.
	AnnotationOrphanChildren = "krop.opendefense.cloud/orphan-children"
	// AnnotationCluster is kcp's annotation that every served object carries.
	AnnotationCluster = "kcp.io/cluster"
)

const (
	// Finalizer holds an instance until its children are gone, and a blueprint until it is unpublished.
	Finalizer = "krop.opendefense.cloud/composition"
	// Prefix starts every label, annotation and finalizer of krop's. Clients can't set them.
	Prefix = "krop.opendefense.cloud/"
	// FieldManagerPrefix and an instance's UID make up the field manager that its children are applied with.
	FieldManagerPrefix = "krop-"
)

// Condition types of an instance. They are reserved: an author's conditions of these types are refused.
const (
	// ConditionReady is true when every child that is wanted is ready.
	ConditionReady = "Ready"
	// ConditionProgressing is true while something is still to be done or awaited.
	ConditionProgressing = "Progressing"
	// ConditionSynced is true when every child that can be written is as wanted.
	ConditionSynced = "Synced"
)

// Condition types of a blueprint; it also has ConditionReady.
const (
	// ConditionCompiled is true when the spec compiles.
	ConditionCompiled = "Compiled"
	// ConditionPublished is true when the APIExport offers it.
	ConditionPublished = "Published"
	// ConditionServing is true when kcp was seen to route the kind to krop, and unknown before the first binding.
	ConditionServing = "Serving"
)

// Reasons of conditions.
const (
	ReasonAllReady      = "AllReady"
	ReasonPending       = "Pending"
	ReasonNotReady      = "NotReady"
	ReasonFailed        = "Failed"
	ReasonComplete      = "Complete"
	ReasonDeleting      = "Deleting"
	ReasonCompiled      = "Compiled"
	ReasonCompileFailed = "CompileFailed"
	ReasonCycle         = "Cycle"
	ReasonPublished     = "Published"
	ReasonPublishFailed = "PublishFailed"
	ReasonServing       = "Serving"
	ReasonNoBinding     = "NoBinding"
	ReasonNotRouted     = "NotRouted"
)
