package kind

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ordered sorts by field what is wrong with an object, so that the same mistakes always get the same answer:
// validation by schema goes through maps. What has no field is about the others, and comes after them.
func ordered(problems field.ErrorList) field.ErrorList {
	nowhere := (*field.Path)(nil).String()
	slices.SortStableFunc(problems, func(a, b *field.Error) int {
		switch {
		case a.Field != b.Field && a.Field == nowhere:
			return 1
		case a.Field != b.Field && b.Field == nowhere:
			return -1
		default:
			return cmp.Or(cmp.Compare(sortable(a.Field), sortable(b.Field)), cmp.Compare(a.ErrorBody(), b.ErrorBody()))
		}
	})
	return problems
}

// sortable is a path of which elements of a list sort by number: [2] before [10].
func sortable(path string) string {
	return indexes.ReplaceAllStringFunc(path, func(index string) string {
		number, err := strconv.Atoi(index[1 : len(index)-1])
		if err != nil { // longer than any list
			return index
		}
		return fmt.Sprintf("[%012d]", number)
	})
}

var indexes = regexp.MustCompile(`\[[0-9]+\]`)
