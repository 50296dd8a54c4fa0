package instance_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
)

// BenchmarkCreate is what storing an instance costs beside composing it: validation, etcd without
// fsync, status.
func BenchmarkCreate(b *testing.B) {
	s := start(b)
	s.composer.steady = true
	i := 0
	for b.Loop() {
		i++
		if _, err := s.main.Create(s.ctx, widget(fmt.Sprintf("w-%d", i)), rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
