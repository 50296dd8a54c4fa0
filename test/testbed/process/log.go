package process

import (
	"bytes"
	"os"
	"strings"
)

// tailBytes bounds what is read of a log to find its last lines; stack traces are longer than that.
const tailBytes = 64 << 10

// tail returns the last lines of a file.
func tail(file string, lines int) ([]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	content := make([]byte, min(info.Size(), tailBytes))
	if _, err := f.ReadAt(content, info.Size()-int64(len(content))); err != nil {
		return nil, err
	}
	all := strings.Split(string(bytes.TrimSpace(content)), "\n")
	return all[max(0, len(all)-lines):], nil
}
