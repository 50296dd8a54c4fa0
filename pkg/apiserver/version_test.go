package apiserver_test

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
	apimachineryversion "k8s.io/apimachinery/pkg/version"

	"go.opendefense.cloud/krop/test/testbed/pki"
)

func TestVersionIsOneThatClientsCanCompare(t *testing.T) {
	b := start(t)
	for _, got := range []answer{b.get(t, nil, "/version"), b.get(t, b.client(t, pki.Client, shard), base+consumer.String()+"/version")} {
		info := apimachineryversion.Info{}
		if err := json.Unmarshal([]byte(got.body), &info); err != nil {
			t.Fatal(err)
		}
		parsed, err := version.ParseSemantic(info.GitVersion)
		if err != nil || parsed.Major() != 1 || parsed.Minor() < 36 || !strings.HasPrefix(parsed.BuildMetadata(), "krop") {
			t.Errorf("%q: %v", info.GitVersion, err)
		}
	}
}
