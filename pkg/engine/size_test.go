package engine

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestSizesAreNotTooSmall compares with what encoding/json writes: an object that was said to fit has to.
func TestSizesAreNotTooSmall(t *testing.T) {
	for name, value := range map[string]any{
		"nothing": nil, "yes": true, "no": false, "number": int64(-1234567890123456789), "fraction": -1.2345678901234567e-300,
		"text": "plain", "quotes": strings.Repeat(`"\`, 100), "markup": strings.Repeat("<&>", 100), "controls": strings.Repeat("\x01\n", 100),
		"separators": strings.Repeat("\u2028\u2029", 100), "not UTF-8": strings.Repeat("\xff\xfe", 100), "cut": "ü\xc3",
		"object": map[string]any{"a": map[string]any{}, "b": []any{}, `"`: []any{"x", int64(1), nil, map[string]any{"": ""}}},
	} {
		raw, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if got := JSONSize(value); got < len(raw) || got > 2*len(raw)+maxNumber {
			t.Errorf("%s: %d, encoding/json writes %d", name, got, len(raw))
		}
	}
}
