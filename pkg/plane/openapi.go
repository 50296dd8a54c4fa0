package plane

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"go.opendefense.cloud/krop/pkg/budget"
)

const (
	openAPIRoot  = "/openapi/v3"
	schemaPrefix = "#/components/schemas/"
	kindsOf      = "x-kubernetes-group-version-kind"
	hashOf       = "hash"
)

// documents keeps resolved schemas under the hash of the document that they come from, so that a
// changed document is another entry, and equal documents of different workspaces are one. Documents are not kept:
// that of the core group alone takes tens of megabytes once parsed.
type documents struct {
	limits  budget.Limits
	schemas *kept
	// parsing is the turn of who reads a document: what it takes in memory is there once.
	parsing *budget.Turns
}

type documentKind struct {
	path, hash string
	gvk        schema.GroupVersionKind
}

func newDocuments(limits budget.Limits) *documents {
	return &documents{limits: limits, schemas: newKept(maxKept), parsing: budget.NewTurns(1, 1, math.MaxInt)}
}

func (d *documents) get(location string, gvk schema.GroupVersionKind) (*hashedSchema, bool) {
	key, ok := keyOf(location, gvk)
	if !ok {
		return nil, false
	}
	return d.schemas.get(key)
}

func (d *documents) add(location string, gvk schema.GroupVersionKind, resolved *hashedSchema) {
	if key, ok := keyOf(location, gvk); ok {
		d.schemas.add(key, resolved)
	}
}

// hashedSchema is a schema with what identifies its content.
type hashedSchema struct {
	schema *spec.Schema
	hash   string
	fields int // of the schema and of all in it
}

func hashed(resolved *spec.Schema) (*hashedSchema, error) {
	content, err := json.Marshal(resolved)
	if err != nil {
		return nil, err
	}
	return &hashedSchema{resolved, fmt.Sprintf("%x", sha256.Sum256(content)), fieldsOf(resolved)}, nil
}

// keyOf is false for a document without a hash, which can't be known to be unchanged.
func keyOf(location string, gvk schema.GroupVersionKind) (documentKind, bool) {
	path, hash := hashIn(location)
	return documentKind{path, hash, gvk}, hash != ""
}

// hashIn is a document's path, and its hash if its location has one.
func hashIn(location string) (path, hash string) {
	parsed, err := url.Parse(location)
	if err != nil {
		return "", ""
	}
	return parsed.Path, parsed.Query().Get(hashOf)
}

// readIndex reads where the plane's documents are, by group version, each with its hash. The
// locations are relative to the plane.
func readIndex(ctx context.Context, client rest.Interface) (map[string]string, error) {
	data, err := readSettled(ctx, client)
	if err != nil {
		return nil, err
	}
	var index handler3.OpenAPIV3Discovery
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, fmt.Errorf("index of OpenAPI documents: %w", err)
	}
	locations := make(map[string]string, len(index.Paths))
	for path, entry := range index.Paths {
		_, query, _ := strings.Cut(entry.ServerRelativeURL, "?")
		locations[path] = openAPIRoot + "/" + path + "?" + query
	}
	return locations, nil
}

const (
	// settlePoll and settlePatience: for some seconds after a CRD was created, kcp answers for all of the
	// workspace's OpenAPI with 500, until its controller has caught up.
	settlePoll     = 200 * time.Millisecond
	settlePatience = 10 * time.Second
)

// readSettled reads the index, and waits a while for a plane that can't tell yet.
func readSettled(ctx context.Context, client rest.Interface) (data []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, settlePatience)
	defer cancel()
	for {
		var now []byte
		now, err = client.Get().AbsPath(openAPIRoot).Do(ctx).Raw()
		if !apierrors.IsInternalError(err) {
			return now, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(settlePoll):
		}
	}
}

// document is the OpenAPI v3 of one group version.
type document struct {
	schemas map[string]*spec.Schema
	kinds   map[schema.GroupVersionKind]string
}

// read reads and parses the document at the location.
func (d *documents) read(ctx context.Context, client rest.Interface, location string) (*document, error) {
	parsed, err := url.Parse(location)
	if err != nil {
		return nil, fmt.Errorf("location of an OpenAPI document: %w", err)
	}
	data, err := d.fetch(ctx, client, parsed)
	if err != nil {
		return nil, err
	}
	leave, err := d.parsing.Enter(ctx, "")
	if err != nil {
		return nil, reach(err)
	}
	defer leave()
	return parse(parsed.Path, data)
}

// fetch reads a document, or as much of it as shows that it is too large.
func (d *documents) fetch(ctx context.Context, client rest.Interface, parsed *url.URL) ([]byte, error) {
	request := client.Get().AbsPath(parsed.Path).SetHeader("Accept", runtime.ContentTypeJSON)
	if hash := parsed.Query().Get(hashOf); hash != "" {
		request.Param(hashOf, hash)
	}
	body, err := request.Stream(ctx)
	if err != nil {
		return nil, reach(err)
	}
	defer func() { _ = body.Close() }()
	data, err := io.ReadAll(io.LimitReader(body, int64(d.limits.Of(budget.DocumentBytes))+1))
	if err != nil {
		return nil, reach(err)
	}
	return data, d.limits.Check(budget.DocumentBytes, len(data))
}

func parse(path string, data []byte) (*document, error) {
	var content struct {
		Components *spec3.Components `json:"components"`
	}
	if err := json.Unmarshal(data, &content); err != nil {
		return nil, reach(fmt.Errorf("OpenAPI document %s: %w", path, err))
	}
	if content.Components == nil {
		content.Components = &spec3.Components{}
	}
	return newDocument(content.Components.Schemas)
}

func newDocument(schemas map[string]*spec.Schema) (*document, error) {
	doc := &document{schemas: schemas, kinds: map[schema.GroupVersionKind]string{}}
	for name, definition := range schemas {
		var kinds []schema.GroupVersionKind
		if err := definition.Extensions.GetObject(kindsOf, &kinds); err != nil {
			return nil, fmt.Errorf("%s of %s: %w", kindsOf, name, err)
		}
		for _, gvk := range kinds {
			doc.kinds[gvk] = name
		}
	}
	return doc, nil
}

// resolve is the kind's schema with all references replaced by what they refer to; nil if the
// document has no such kind.
func (d *document) resolve(gvk schema.GroupVersionKind) (*spec.Schema, error) {
	name, ok := d.kinds[gvk]
	if !ok {
		return nil, nil
	}
	return resolver.PopulateRefs(func(ref string) (*spec.Schema, bool) {
		definition, ok := d.schemas[strings.TrimPrefix(ref, schemaPrefix)]
		return definition, ok
	}, name)
}

// groupVersionPath is how both discovery and the index name a group version.
func groupVersionPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.Group + "/" + gv.Version
}

func isSubresource(name string) bool { return strings.Contains(name, "/") }
