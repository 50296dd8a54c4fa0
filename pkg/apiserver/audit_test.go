package apiserver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opendefense.cloud/krop/pkg/apiserver"
	"go.opendefense.cloud/krop/test/testbed/pki"
)

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
rules: [{level: Metadata}]
`

func TestAuditSaysWhichClusterAndExport(t *testing.T) {
	dir := t.TempDir()
	policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	b := start(t, func(o *apiserver.Options) {
		o.Audit.PolicyFile, o.Audit.LogOptions.Path = policy, log
	})
	b.get(t, b.client(t, pki.Client, shard), base+consumer.String()+apis+"/namespaces/default/widgets")
	b.get(t, nil, base+consumer.String()+apis+"/namespaces/default/widgets")

	var written string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		content, _ := os.ReadFile(log)
		if written = string(content); strings.Contains(written, `"code":401`) {
			break
		}
	}
	for _, want := range []string{`"krop.opendefense.cloud/cluster":"consumer1"`, `"krop.opendefense.cloud/export":"provider1/widgets.example.org"`, `"username":"shard-root"`, `"code":401`} {
		if !strings.Contains(written, want) {
			t.Errorf("%s is missing in %s", want, written)
		}
	}
}
