// Package manifests holds what is applied to kcp: the definition of the blueprint kind (crd), what a
// provider applies in its workspace (provider), and what `krop bootstrap` applies in krop's own (krop); and what
// the operator of a host cluster applies there (host).
package manifests

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Names of the manifests.
const (
	// BlueprintCRD defines the blueprint kind. It is generated from pkg/apis and never created as a CRD.
	BlueprintCRD = "crd/krop.opendefense.cloud_resourcegraphdefinitions.yaml"
	// ServerRights is what krop's user may do in krop's own workspace.
	ServerRights = "krop/10-server-rights.yaml"
	// Binders says who may bind the blueprint kind.
	Binders = "krop/20-binders.yaml"
	// EndpointSliceCRD defines the kind through which kcp learns where krop serves an export.
	EndpointSliceCRD = "provider/10-endpointslice-crd.yaml"
	// CachedResource brings endpoint slices to kcp's cache server.
	CachedResource = "provider/20-cachedresource.yaml"
	// KropRights is what krop's user may do in a provider's workspace.
	KropRights = "provider/30-krop-rights.yaml"
	// ChildKinds are the kinds that krop's user may compose in a provider's workspace.
	ChildKinds = "provider/40-child-kinds.yaml"
	// HostRights is what krop needs to see on a host, whatever is composed there.
	HostRights = "host/10-krop-rights.yaml"
	// HostKinds are the kinds that krop's user may compose on the host.
	HostKinds = "host/20-child-kinds.yaml"
	// Binding brings the blueprint kind into a provider's workspace.
	Binding = "provider/50-apibinding.yaml"
)

// Where, in krop's repository, people find what to apply.
const (
	// Folder is where all manifests are.
	Folder = "manifests"
	// ProviderFolder is for providers.
	ProviderFolder = Folder + "/provider"
	// HostFolder is for operators of a host.
	HostFolder = Folder + "/host"
)

//go:embed crd/*.yaml host/*.yaml krop/*.yaml provider/*.yaml
var files embed.FS

// Objects are the objects in a manifest, in order.
func Objects(name string) ([]*unstructured.Unstructured, error) {
	data, err := files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), len(data))
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("manifest %s: %w", name, err)
		}
		objects = append(objects, object)
	}
}

// Blueprint is the definition of the blueprint kind, ResourceGraphDefinition.
func Blueprint() (*apiextensionsv1.CustomResourceDefinition, error) {
	objects, err := Objects(BlueprintCRD)
	if err != nil {
		return nil, err
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[0].Object, definition); err != nil {
		return nil, fmt.Errorf("manifest %s: %w", BlueprintCRD, err)
	}
	return definition, nil
}
