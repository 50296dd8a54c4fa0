package budget

import (
	"fmt"
	"unicode/utf8"
)

// Cut is a message as long as so many messages may be. It says how much is missing, and is never cut within a
// character.
func Cut(message string, messages int) string {
	end := messages * MessageBytes.Default
	if len(message) <= end {
		return message
	}
	for end > 0 && !utf8.RuneStart(message[end]) {
		end--
	}
	return fmt.Sprintf("%s… (%d of %d bytes)", message[:end], end, len(message))
}
