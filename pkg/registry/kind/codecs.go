package kind

import (
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/conversion"
	"k8s.io/apiextensions-apiserver/pkg/crdserverscheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/versioning"
)

// codecs is how objects of the kind are read and written.
type codecs struct {
	typer          runtime.ObjectTyper
	creater        runtime.ObjectCreater
	safe, unsafe   runtime.ObjectConvertor // the safe one copies first
	parameterCodec runtime.ParameterCodec
	storage        runtime.Codec
	negotiated     *negotiatedSerializer
}

// converters makes the converters of all kinds; its metrics may be registered once only.
var converters = sync.OnceValues(func() (*conversion.CRConverterFactory, error) {
	return conversion.NewCRConverterFactory(nil, nil)
})

// apiTypes are the types other than the kind's own that pass through its serializers.
var apiTypes = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	scheme.AddUnversionedTypes(schema.GroupVersion{Version: "v1"},
		&metav1.Status{}, &metav1.WatchEvent{}, &metav1.APIVersions{},
		&metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return scheme
}()

func (k *Kind) buildCodecs(*apiextensions.CustomResourceDefinition) error {
	factory, err := converters()
	if err != nil {
		return fmt.Errorf("making the converters: %w", err)
	}
	c := codecs{typer: k.typer(), creater: creater{}}
	if c.safe, c.unsafe, err = factory.NewConverter(k.crd); err != nil {
		return fmt.Errorf("making the converter: %w", err)
	}
	c.parameterCodec = runtime.NewParameterCodec(k.parameters())
	c.storage = versioning.NewCodec(
		unstructured.UnstructuredJSONScheme, storedDecoder{k.schema}, c.unsafe, c.creater,
		crdserverscheme.NewUnstructuredObjectTyper(), k.schema, k.GVK().GroupVersion(), k.GVK().GroupVersion(), "krop")
	c.negotiated = newNegotiatedSerializer(c, k.schema)
	k.codecs = c
	return nil
}

// parameters are the options that come in query strings, in the kind's own version.
func (k *Kind) parameters() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddUnversionedTypes(k.GVK().GroupVersion(),
		&metav1.ListOptions{}, &metav1.GetOptions{}, &metav1.DeleteOptions{})
	return scheme
}

func (k *Kind) typer() runtime.ObjectTyper {
	return typer{others: k.parameters(), unstructured: crdserverscheme.NewUnstructuredObjectTyper()}
}

// typer knows the type of unstructured objects from what they say, and that of options from a scheme.
type typer struct {
	others, unstructured runtime.ObjectTyper
}

func (t typer) ObjectKinds(object runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	if _, ok := object.(runtime.Unstructured); ok {
		return t.unstructured.ObjectKinds(object)
	}
	return t.others.ObjectKinds(object)
}

func (t typer) Recognizes(gvk schema.GroupVersionKind) bool {
	return t.others.Recognizes(gvk) || t.unstructured.Recognizes(gvk)
}

// creater makes every object unstructured.
type creater struct{}

func (creater) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	return object, nil
}

// storedDecoder decodes what is in etcd, in whatever version it was stored: a blueprint that moves
// from v1alpha1 to v1 leaves objects behind that must be served, not pruned to nothing.
type storedDecoder struct{ schema *structural }

func (d storedDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object, gvk, err := unstructured.UnstructuredJSONScheme.Decode(data, defaults, into)
	if err != nil {
		return nil, gvk, err
	}
	if u, ok := object.(*unstructured.Unstructured); ok {
		if d.schema.describes(u) {
			u.SetAPIVersion(d.schema.gvk.GroupVersion().String())
		}
		if _, err := d.schema.coerce(u, coercion{repair: true}); err != nil {
			return nil, gvk, err
		}
	}
	return object, gvk, nil
}
