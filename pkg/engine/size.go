package engine

import (
	"strconv"
	"unicode/utf8"
)

// JSONSize is how many bytes the value has as JSON, in about the time that reading it takes. Where JSON could write a
// thing in two ways it takes the longer one.
func JSONSize(value any) int {
	switch v := value.(type) {
	case nil:
		return len("null")
	case bool:
		return len("false")
	case string:
		return stringSize(v)
	case map[string]any:
		size := len("{}")
		for key, element := range v {
			size += stringSize(key) + len(":,") + JSONSize(element)
		}
		return size
	case []any:
		size := len("[]")
		for _, element := range v {
			size += len(",") + JSONSize(element)
		}
		return size
	case int64:
		return len(strconv.FormatInt(v, 10))
	default:
		return maxNumber
	}
}

// maxNumber is the longest number that JSON is written with.
const maxNumber = 24

// escaped is the size of a character that is written as \u0000. encoding/json does so with controls and with what
// HTML would take for markup, and with bytes that are no UTF-8: 6 for one.
const escaped = 6

func stringSize(text string) int {
	size := len(`""`) + len(text)
	high := 1 // a byte of U+2028, which is three
	if !utf8.ValidString(text) {
		high = escaped - 1
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			size++
		case c < ' ' || c == '<' || c == '>' || c == '&':
			size += escaped - 1
		case c >= utf8.RuneSelf:
			size += high
		}
	}
	return size
}
