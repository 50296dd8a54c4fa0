package engine

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

const (
	// maxNameLength keeps names usable as DNS labels and label values, whatever the kind.
	maxNameLength = 63
	// digestLength is 65 bits: nobody finds another tenant's name by trying.
	digestLength = 13
)

// digestEncoding gives letters and digits that every kind of name allows.
var digestEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// digest hashes the parts, each delimited so that no two lists of parts read the same.
func digest(parts ...string) string {
	hash := sha256.New()
	for _, part := range parts {
		hash.Write([]byte(part))
		hash.Write([]byte{0})
	}
	return digestEncoding.EncodeToString(hash.Sum(nil))[:digestLength]
}

// shorten joins as much of the prefix as fits with the suffix.
func shorten(prefix, suffix string) string {
	if room := maxNameLength - len(suffix) - 1; len(prefix) > room {
		prefix = prefix[:room]
	}
	prefix = strings.TrimRight(strings.ToValidUTF8(prefix, ""), "-._:")
	if prefix == "" {
		return suffix
	}
	return prefix + "-" + suffix
}

// FieldManager is the field manager that an instance's children are applied with.
func FieldManager(instanceUID types.UID) string {
	return v1alpha1.FieldManagerPrefix + string(instanceUID)
}

// BlueprintLabel is the value of LabelBlueprint: the name, or a prefix and a hash of it if it is
// longer than a label value may be.
func BlueprintLabel(name string) string {
	if len(name) <= maxNameLength {
		return name
	}
	return shorten(name, digest(name))
}

// meaningfulNames are resources whose names their API servers dictate. Renamed, they would be
// refused, so they keep the template's name; a clash is a conflict of ownership like any other.
var meaningfulNames = map[schema.GroupResource]bool{
	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}: true,
	{Group: "apiregistration.k8s.io", Resource: "apiservices"}:             true,
	{Group: "apis.kcp.io", Resource: "apiresourceschemas"}:                 true,
}

// naming gives children their names. Provider and host planes are shared by all consumers (the host
// by all providers too), so there a name must depend on everything that tells instances apart.
type naming struct {
	program  *Program
	consumer logicalcluster.Name
	instance *unstructured.Unstructured
}

// child is the name of the node's child that the template calls name.
func (n naming) child(node *Node, name string) string {
	if node.Target == v1alpha1.TargetConsumer || meaningfulNames[node.GVR.GroupResource()] {
		return name
	}
	return shorten(name, digest(
		n.program.Export.Cluster.String(), n.program.Blueprint,
		n.consumer.String(), n.instance.GetNamespace(), n.instance.GetName(),
		string(node.ID), name,
	))
}
