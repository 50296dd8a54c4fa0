package budget

import (
	"fmt"
	"unicode/utf8"
)

// Cut is a message as long as so many messages may be. It says how much is missing.
func Cut(message string, messages int) string {
	most := messages * MessageBytes.Default
	if len(message) <= most {
		return message
	}
	head, tail := Ends(message, most)
	return fmt.Sprintf("%s… (%d of %d bytes) …%s", head, len(head)+len(tail), len(message), tail)
}

// Ends are the beginning and the end of a message that is longer than so many bytes, which they have together at
// most. Both matter: a message begins with the field, and what is wrong with a value is said after the value. No
// character is cut in two.
func Ends(message string, bytes int) (head, tail string) {
	end := bytes - bytes/4
	start := len(message) - bytes/4
	for end > 0 && !utf8.RuneStart(message[end]) {
		end--
	}
	for start < len(message) && !utf8.RuneStart(message[start]) {
		start++
	}
	return message[:end], message[start:]
}
