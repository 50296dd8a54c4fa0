package apiserver

import "testing"

func TestObjectsAreMeasuredAsTheyCome(t *testing.T) {
	for name, c := range map[string]struct {
		text                  string
		size, values, deepest int
	}{
		"empty":                {`{}`, 2, 1, 1},
		"white space":          {" {\n \"a\" : [ 1 , 2 ] } ", len(`{"a":[1,2]}`), 3, 2},
		"white space in text":  {`{"a b": "c  d"}`, len(`{"a b":"c  d"}`), 1, 1},
		"brackets in text":     {`{"a":"}][{,:"}`, len(`{"a":"}][{,:"}`), 1, 1},
		"quotes in text":       {`{"a\"":"\\","b":{}}`, len(`{"a\"":"\\","b":{}}`), 3, 2},
		"status":               {`{"a":1,"status":{"b":[1,2,3]},"c":1}`, len(`{"a":1,"status","c":1}`), 3, 3},
		"status comes last":    {`{"a":1,"status":{"b":{}}}`, len(`{"a":1,"status"}`), 2, 3},
		"a status below":       {`{"a":{"status":[1]}}`, len(`{"a":{"status":[1]}}`), 3, 3},
		"owners":               {`{"metadata":{"managedFields":[{},{}],"name":"n"}}`, len(`{"metadata":{"managedFields","name":"n"}}`), 3, 4},
		"owners of no object":  {`{"spec":{"managedFields":[1]}}`, len(`{"spec":{"managedFields":[1]}}`), 3, 3},
		"a value named status": {`{"a":"status","b":[1]}`, len(`{"a":"status","b":[1]}`), 3, 2},
		"a list":               {`[{"a":[]}]`, 0, 0, 0},
		"YAML":                 {"a: {b: c}", 0, 0, 0},
	} {
		for _, step := range []int{1, 3, len(c.text)} {
			var measured jsonText
			for at := 0; at < len(c.text); at += step {
				measured.follow([]byte(c.text[at:min(at+step, len(c.text))]))
			}
			if measured.size != c.size || measured.values != c.values || measured.deepest != c.deepest {
				t.Errorf("%s, %d at a time: %d bytes, %d values, %d deep, want %d, %d, %d", name, step,
					measured.size, measured.values, measured.deepest, c.size, c.values, c.deepest)
			}
		}
	}
}
