package apiserver

// jsonText follows an object in JSON as it comes, and measures it. What isn't an object it leaves alone: patches of
// operations may be larger than what they make, and YAML is for others.
type jsonText struct {
	// size is how many bytes it has without white space, and without what clients only send back: status and
	// managedFields.
	size int
	// values is about how many there are: fields, elements and containers.
	values int
	// deepest is how deep it is nested.
	deepest int

	depth           int
	quoted, escaped bool
	begun, foreign  bool
	// key is the string that was read last, as far as it is of interest, and owner the key whose value is the object
	// of depth 2.
	key, owner []byte
	// skipping is the depth at which the value ends that isn't counted; 0 if it is.
	skipping int
}

// longestKey is one more than the keys that are of interest have.
const longestKey = len("managedFields") + 1

func (t *jsonText) follow(text []byte) {
	for _, c := range text {
		if t.foreign {
			return
		}
		t.next(c)
	}
}

func (t *jsonText) next(c byte) {
	switch {
	case t.escaped:
		t.escaped = false
	case t.quoted:
		t.inString(c)
	case c == '"':
		t.quoted, t.key = true, t.key[:0]
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		return
	case !t.begun && c != '{':
		t.foreign = true
		return
	case c == '{' || c == '[':
		t.open()
	case c == '}' || c == ']':
		t.close()
	case c == ',':
		t.comma()
	case c == ':' && t.skipping == 0 && t.uncounted():
		t.skipping = t.depth
	}
	if t.skipping == 0 {
		t.size++
	}
}

func (t *jsonText) inString(c byte) {
	t.escaped, t.quoted = c == '\\', c != '"'
	if t.quoted && len(t.key) < longestKey {
		t.key = append(t.key, c)
	}
}

func (t *jsonText) open() {
	if t.depth == 1 {
		t.owner = append(t.owner[:0], t.key...)
	}
	t.begun = true
	t.depth++
	t.deepest = max(t.deepest, t.depth)
	t.value()
}

func (t *jsonText) close() {
	if t.skipping == t.depth { // the container that the value was in
		t.skipping = 0
	}
	t.depth--
}

func (t *jsonText) comma() {
	if t.skipping == t.depth {
		t.skipping = 0
	}
	t.value()
}

func (t *jsonText) value() {
	if t.skipping == 0 {
		t.values++
	}
}

// uncounted says whether the value of the key is one that clients only send back.
func (t *jsonText) uncounted() bool {
	return t.depth == 1 && string(t.key) == "status" ||
		t.depth == 2 && string(t.key) == "managedFields" && string(t.owner) == "metadata"
}
