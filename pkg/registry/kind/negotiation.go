package kind

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/runtime/serializer/versioning"
)

// negotiatedSerializer reads requests and writes responses in the media type that was agreed on.
type negotiatedSerializer struct {
	convertor  runtime.ObjectConvertor
	schema     *structural
	mediaTypes []runtime.SerializerInfo
}

var _ runtime.NegotiatedSerializer = &negotiatedSerializer{}

func newNegotiatedSerializer(c codecs, s *structural) *negotiatedSerializer {
	return &negotiatedSerializer{convertor: c.safe, schema: s, mediaTypes: mediaTypes(c.creater, c.typer)}
}

// SupportedMediaTypes are JSON, YAML and protobuf. Objects of the kind have no protobuf form: only
// what is made of them (PartialObjectMetadata) and around them (Status, DeleteOptions) has.
func (n *negotiatedSerializer) SupportedMediaTypes() []runtime.SerializerInfo { return n.mediaTypes }

// objectMediaTypes are those that objects of the kind themselves can have.
func (n *negotiatedSerializer) objectMediaTypes() []runtime.SerializerInfo {
	var infos []runtime.SerializerInfo
	for _, info := range n.mediaTypes {
		if info.MediaType != runtime.ContentTypeProtobuf {
			infos = append(infos, info)
		}
	}
	return infos
}

// EncoderForVersion converts before it encodes.
func (n *negotiatedSerializer) EncoderForVersion(encoder runtime.Encoder, gv runtime.GroupVersioner) runtime.Encoder {
	return briefEncoder{versioning.NewCodec(encoder, nil, n.convertor, apiTypes, apiTypes, apiTypes, gv, nil, "kropNegotiated")}
}

// DecoderToVersion prunes, checks and defaults what it has decoded.
func (n *negotiatedSerializer) DecoderToVersion(decoder runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	strict := false
	if serializer, ok := decoder.(*json.Serializer); ok {
		strict = serializer.IsStrict()
	}
	coercing := requestDecoder{decoder: decoder, schema: n.schema, strict: strict}
	return versioning.NewCodec(nil, coercing, runtime.UnsafeObjectConvertor(apiTypes), apiTypes, apiTypes, n.schema, nil, gv, "kropNegotiated")
}

// requestDecoder decodes what clients send. A strict one names every unknown field; whether that is
// an error or a warning is the handler's to decide.
type requestDecoder struct {
	decoder runtime.Decoder
	schema  *structural
	strict  bool
}

func (d requestDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object, gvk, err := d.decoder.Decode(data, defaults, into)
	var problems []error
	if err != nil {
		strict, ok := runtime.AsStrictDecodingError(err)
		if !ok || object == nil {
			return nil, gvk, err
		}
		problems = strict.Errors()
	}
	if u, ok := object.(*unstructured.Unstructured); ok {
		if err := checkDepth(u); err != nil {
			return nil, gvk, err
		}
		unknown, err := d.schema.coerce(u, coercion{reportUnknown: d.strict})
		if err != nil {
			return nil, gvk, err
		}
		for _, field := range unknown {
			problems = append(problems, fmt.Errorf("unknown field %q", field))
		}
	}
	if d.strict && len(problems) > 0 {
		return object, gvk, runtime.NewStrictDecodingError(problems)
	}
	return object, gvk, nil
}

func mediaTypes(creater runtime.ObjectCreater, typer runtime.ObjectTyper) []runtime.SerializerInfo {
	text := func(options json.SerializerOptions) runtime.Serializer {
		return json.NewSerializerWithOptions(json.DefaultMetaFactory, creater, typer, options)
	}
	return []runtime.SerializerInfo{
		{
			MediaType: runtime.ContentTypeJSON, MediaTypeType: "application", MediaTypeSubType: "json", EncodesAsText: true,
			Serializer:       text(json.SerializerOptions{StreamingCollectionsEncoding: true}),
			PrettySerializer: text(json.SerializerOptions{Pretty: true}),
			StrictSerializer: text(json.SerializerOptions{Strict: true, StreamingCollectionsEncoding: true}),
			StreamSerializer: &runtime.StreamSerializerInfo{
				EncodesAsText: true, Serializer: text(json.SerializerOptions{}), Framer: json.Framer,
			},
		},
		{
			MediaType: runtime.ContentTypeYAML, MediaTypeType: "application", MediaTypeSubType: "yaml", EncodesAsText: true,
			Serializer:       text(json.SerializerOptions{Yaml: true}),
			StrictSerializer: text(json.SerializerOptions{Yaml: true, Strict: true}),
		},
		{
			MediaType: runtime.ContentTypeProtobuf, MediaTypeType: "application", MediaTypeSubType: "vnd.kubernetes.protobuf",
			Serializer: protobuf.NewSerializerWithOptions(creater, typer, protobuf.SerializerOptions{StreamingCollectionsEncoding: true}),
			StreamSerializer: &runtime.StreamSerializerInfo{
				Serializer: protobuf.NewRawSerializer(creater, typer), Framer: protobuf.LengthDelimitedFramer,
			},
		},
	}
}
