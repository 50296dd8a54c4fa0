package compose

import (
	"context"
	"strings"
	"testing"
)

func TestAPanicInParallelIsTheCallersAndSaysWhere(t *testing.T) {
	defer func() {
		caught, ok := recover().(error)
		if !ok {
			t.Fatal("the caller does not panic")
		}
		if message := caught.Error(); !strings.Contains(message, "no such field") || !strings.Contains(message, "parallel_test.go") {
			t.Errorf("neither value nor place are told: %s", message)
		}
	}()
	each(t.Context(), []int{1, 2, 3}, func(_ context.Context, i int) int {
		if i == 2 {
			panic("no such field")
		}
		return i
	})
}
