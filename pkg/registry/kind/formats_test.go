package kind

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

func TestFieldValidationNamesUnknownFields(t *testing.T) {
	store, s, _ := served(t)
	seen := &warnings{}
	client := s.client(t, one, seen).Namespace(namespace)
	object := widget(store.Kind, "a", with("x", "spec", "unknown"))

	_, err := client.Create(t.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "spec.unknown") {
		t.Errorf("strict: %v", err)
	}
	if _, err := client.Create(t.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationWarn}); err != nil {
		t.Fatal(err)
	}
	if len(seen.texts) != 1 || !strings.Contains(seen.texts[0], "spec.unknown") {
		t.Errorf("warnings %q", seen.texts)
	}
	seen.texts = nil
	object.SetName("b")
	if _, err := client.Create(t.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationIgnore}); err != nil {
		t.Fatal(err)
	}
	if len(seen.texts) != 0 {
		t.Errorf("warnings %q", seen.texts)
	}
}

func TestFieldSelectors(t *testing.T) {
	store, _, client := served(t)
	for name, color := range map[string]string{"a": "red", "b": "blue"} {
		if _, err := client.Create(t.Context(), widget(store.Kind, name, with(color, "spec", "color")), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for selector, want := range map[string][]string{
		"metadata.name=a":          {"a"},
		"metadata.namespace=other": nil,
		"spec.color=blue":          {"b"},
		"spec.color!=blue":         {"a"},
		"metadata.namespace=" + namespace + ",spec.color=red": {"a"},
	} {
		list, err := client.List(t.Context(), metav1.ListOptions{FieldSelector: selector})
		if err != nil {
			t.Errorf("%s: %v", selector, err)
			continue
		}
		if got := names(list); !slices.Equal(got, want) {
			t.Errorf("%s: %v", selector, got)
		}
	}
	if _, err := client.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.size=3"}); !apierrors.IsBadRequest(err) {
		t.Errorf("a field that isn't selectable: %v", err)
	}
}

func names(list *unstructured.UnstructuredList) (names []string) {
	for _, item := range list.Items {
		names = append(names, item.GetName())
	}
	return names
}

func TestTablesHaveTheKindsColumns(t *testing.T) {
	store, s, client := served(t)
	if _, err := client.Create(t.Context(), widget(store.Kind, "a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, _, body := s.fetch(t, one, "/namespaces/"+namespace+"/widgets", "application/json;as=Table;g=meta.k8s.io;v=v1,application/json")
	table := &metav1.Table{}
	if err := json.Unmarshal(body, table); err != nil {
		t.Fatal(err)
	}
	if table.Kind != "Table" || len(table.Rows) != 1 || table.ColumnDefinitions[1].Name != "Color" || table.Rows[0].Cells[1] != "red" {
		t.Errorf("table %s", body)
	}
}

func TestProtobufIsForMetadataOnly(t *testing.T) {
	store, s, client := served(t)
	if _, err := client.Create(t.Context(), widget(store.Kind, "a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	path := "/namespaces/" + namespace + "/widgets"

	status, contentType, _ := s.fetch(t, one, path, "application/vnd.kubernetes.protobuf,application/json")
	if status != 200 || contentType != "application/json" {
		t.Errorf("with JSON as an alternative: %d %s", status, contentType)
	}
	if status, _, _ := s.fetch(t, one, path, "application/vnd.kubernetes.protobuf"); status != 406 {
		t.Errorf("without an alternative: %d", status)
	}
	status, contentType, body := s.fetch(t, one, path,
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
	if status != 200 || !strings.HasPrefix(contentType, "application/vnd.kubernetes.protobuf") {
		t.Fatalf("metadata: %d %s", status, contentType)
	}
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	list := &metav1.PartialObjectMetadataList{}
	if _, _, err := protobuf.NewSerializer(scheme, scheme).Decode(body, nil, list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].Name != "a" {
		t.Errorf("metadata %v", list)
	}
}
