package plane

import (
	"container/list"
	"sync"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// maxKept is how many fields the schemas may have together that are kept, over all planes: at about a kilobyte each,
// some 200 MiB. A provider with giant kinds takes the place of others' then, and no memory.
const maxKept = 200_000

// kept is the schemas that were used last, as many as have the fields that are allowed. Safe for concurrent use.
type kept struct {
	most int

	mutex  sync.Mutex
	fields int
	order  *list.List // of keptSchema, the last used first
	at     map[documentKind]*list.Element
}

type keptSchema struct {
	key    documentKind
	schema *hashedSchema
}

func newKept(most int) *kept {
	return &kept{most: most, order: list.New(), at: map[documentKind]*list.Element{}}
}

func (k *kept) get(key documentKind) (*hashedSchema, bool) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	element, ok := k.at[key]
	if !ok {
		return nil, false
	}
	k.order.MoveToFront(element)
	return element.Value.(keptSchema).schema, true
}

func (k *kept) add(key documentKind, schema *hashedSchema) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if element, ok := k.at[key]; ok {
		k.remove(element)
	}
	k.at[key] = k.order.PushFront(keptSchema{key, schema})
	k.fields += schema.fields
	for k.fields > k.most {
		k.remove(k.order.Back())
	}
}

func (k *kept) remove(element *list.Element) {
	removed := k.order.Remove(element).(keptSchema)
	delete(k.at, removed.key)
	k.fields -= removed.schema.fields
}

// fieldsOf counts a schema and all in it.
func fieldsOf(schema *spec.Schema) int {
	count := 1
	for name := range schema.Properties {
		below := schema.Properties[name]
		count += fieldsOf(&below)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		count += fieldsOf(schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		count += fieldsOf(schema.AdditionalProperties.Schema)
	}
	for _, several := range [][]spec.Schema{schema.AllOf, schema.AnyOf, schema.OneOf} {
		for i := range several {
			count += fieldsOf(&several[i])
		}
	}
	return count
}
