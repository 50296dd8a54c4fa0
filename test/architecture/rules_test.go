package architecture

import (
	"strings"
)

const (
	module = "go.opendefense.cloud/krop"
	kro    = "github.com/kubernetes-sigs/kro"
	kcpSDK = "github.com/kcp-dev/sdk"
)

// rule forbids packages to import others. Packages of this module are followed through each other, so that a
// rule can't be got around by a package in between; those of other modules are looked at where they are imported.
type rule struct {
	// packages that the rule is about, with all below them.
	packages []string
	// except are packages, with all below them, that it is not about.
	except []string
	// forbidden are import paths, with all below them.
	forbidden []string
	// allowed are import paths among the forbidden that are fine all the same.
	allowed []string
	// tests are held to the rule too.
	tests bool
	// reason is why.
	reason string
}

// product is what is built into the binary.
var product = []string{module + "/cmd/krop", module + "/pkg", module + "/manifests"}

// kcpPublishing are kcp's types for exports, bindings, caches and workspaces.
var kcpPublishing = []string{
	kcpSDK + "/apis/apis", kcpSDK + "/apis/cache", kcpSDK + "/apis/tenancy",
	kcpSDK + "/client",
}

// rules are the column "never imports" of the design's package table, and what its prose adds.
var rules = []rule{
	{
		packages:  []string{module},
		except:    []string{module + "/pkg/engine/kro"},
		forbidden: []string{kro},
		tests:     true,
		reason:    "kro's runtime API is gone from its main branch: one adapter is rewritten when we follow, not the product",
	},
	{
		packages:  product,
		except:    []string{module + "/pkg/publish"},
		forbidden: kcpPublishing,
		reason:    "kcp's main branch renames its publishing types: what knows them is one package",
	},
	{
		packages:  []string{module},
		forbidden: []string{"github.com/kcp-dev/kcp", "github.com/kcp-dev/client-go", "github.com/kcp-dev/apimachinery"},
		tests:     true,
		reason:    "the contract with kcp is HTTP; its server, its forks and their replace directives stay out of go.mod",
	},
	{
		packages:  []string{module + "/pkg/apis"},
		forbidden: []string{module},
		reason:    "API types are for everybody, clients included: they bring nothing else of krop along",
	},
	{
		packages:  []string{module + "/pkg/budget"},
		forbidden: []string{module},
		reason:    "everybody asks what is allowed and says in the same words what isn't: bounds know nobody who keeps them",
	},
	{
		packages: []string{module + "/pkg/engine"},
		forbidden: []string{
			"k8s.io/client-go", "net/http", "go.etcd.io",
			"k8s.io/apiserver/pkg/storage", "k8s.io/apiserver/pkg/registry",
			"k8s.io/apiserver/pkg/server", "k8s.io/apiserver/pkg/endpoints",
		},
		allowed: []string{"k8s.io/client-go/util/jsonpath"}, // a parser and no client
		reason:  "the engine is pure: a plan depends on nothing but blueprint, instance and what is observed, so a bug in it is a text test",
	},
	{
		packages:  []string{module + "/pkg/engine"},
		forbidden: []string{module},
		allowed:   []string{module + "/pkg/apis", module + "/pkg/engine", module + "/pkg/budget"},
		reason:    "the engine is called by the rest and calls none of it",
	},
	{
		packages:  []string{module + "/pkg/engine"},
		except:    []string{module + "/pkg/engine/kro"},
		forbidden: []string{module + "/pkg/engine/kro"},
		reason:    "planning knows what a program can answer, not which library compiled it",
	},
	{
		packages:  []string{module + "/pkg/plane"},
		forbidden: []string{module + "/pkg/engine", module + "/pkg/registry"},
		reason:    "a plane carries objects out and back and knows nothing of what they are for or of who stores what",
	},
	{
		packages:  []string{module + "/pkg/compose"},
		forbidden: []string{module + "/pkg/registry", module + "/pkg/gc", module + "/pkg/apiserver"},
		reason:    "requests and the loop both compose: what they share can't know either",
	},
	{
		packages:  []string{module + "/pkg/registry"},
		forbidden: []string{module + "/pkg/gc"},
		reason:    "the way of a write is one straight line; the loop goes on from what is stored and is never called",
	},
	{
		packages:  []string{module + "/pkg/publish"},
		forbidden: []string{module + "/pkg/engine/kro"},
		reason:    "publishing needs the kind and the claims of a program, not how it was compiled",
	},
	{
		packages:  []string{module + "/pkg/gc"},
		forbidden: []string{module + "/pkg/apiserver", module + "/pkg/registry/instance", module + "/pkg/registry/blueprint"},
		reason:    "the loop works on stored state, not through the handlers of requests",
	},
	{
		packages:  []string{module + "/pkg"},
		forbidden: []string{module + "/cmd"},
		reason:    "commands wire packages together; nothing depends on the wiring",
	},
	{
		packages:  product,
		forbidden: []string{module + "/test"},
		tests:     false,
		reason:    "the test bed starts the product, and is no part of it",
	},
	{
		packages:  product,
		except:    []string{module + "/pkg/plane/planetest"},
		forbidden: []string{module + "/pkg/plane/planetest"},
		reason:    "planetest starts servers for tests",
	},
}

// about says whether the rule is about a package.
func (r rule) about(path string) bool {
	return under(path, r.packages) && !under(path, r.except)
}

// forbids says whether the rule forbids an import.
func (r rule) forbids(path string) bool {
	return under(path, r.forbidden) && !under(path, r.allowed)
}

// under says whether a path is one of the roots or below one.
func under(path string, roots []string) bool {
	for _, root := range roots {
		if path == root || strings.HasPrefix(path, root+"/") {
			return true
		}
	}
	return false
}
