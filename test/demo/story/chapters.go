package story

import "go.opendefense.cloud/krop/test/testbed"

// Who acts.
const (
	provider  = testbed.Provider
	consumer  = testbed.Consumer
	consumer2 = testbed.Consumer2
	host      = testbed.Host
)

// files of the example.
const folder = "examples/database/"

// Chapters is the whole story.
func Chapters() []Chapter {
	return []Chapter{
		offering(),
		brokenBlueprint(),
		using(),
		refusals(),
		everyday(),
		apart(),
		onHost(),
		ending(),
	}
}

// offering is how a provider publishes.
func offering() Chapter {
	return Chapter{Title: "1. A provider offers databases", Steps: []Step{
		{
			Says: "The provider has a kind of its own, DatabaseServer, and lets krop compose objects of it.",
			As:   provider,
			Args: []string{"apply", "-f", folder + "provider/10-server-crd.yaml", "-f", folder + "provider/20-krop-rights.yaml"},
		},
		{
			As:   provider,
			Args: []string{"wait", "--for=condition=Established", "crd/databaseservers.infra.example.org"},
		},
		{
			Says: "The blueprint is one object. It is compiled before kubectl returns, and then published.",
			As:   provider,
			Args: []string{"apply", "-f", folder + "provider/30-blueprint.yaml"},
		},
		{
			As:   provider,
			Args: []string{"wait", "--for=condition=Ready", "rgd/databases", "--timeout=30s"},
			Holds: all(
				condition(provider, Blueprints, "databases", "Compiled", "True"),
				condition(provider, Blueprints, "databases", "Published", "True"),
				field(provider, Blueprints, "databases", "databases.db.example.org", "status", "exportedAPI"),
				exist(provider, Exports, "databases.db.example.org"),
			),
		},
		{
			As:       provider,
			Args:     []string{"get", "rgd"},
			Mentions: []string{"databases.db.example.org"},
		},
		{
			Says:     "This is what consumers will be asked to accept. It is derived from the blueprint.",
			As:       provider,
			Args:     []string{"get", "rgd", "databases", "-o", `jsonpath={range .status.permissionClaims[*]}{.resource}{"\t"}{.verbs}{"\n"}{end}`},
			Mentions: []string{"configmaps", "secrets"},
		},
		{
			Says:      "Applying it again changes nothing.",
			As:        provider,
			Args:      []string{"apply", "-f", folder + "provider/30-blueprint.yaml"},
			Mentions:  []string{"unchanged"},
			Unchanged: true,
		},
	}}
}

// brokenBlueprint is refused with all of its errors.
func brokenBlueprint() Chapter {
	return Chapter{Title: "2. A blueprint that does not compile", Steps: []Step{{
		Says:      "It is refused at once, with everything that is wrong with it: which resource, which field, and what was expected.",
		As:        provider,
		Args:      []string{"apply", "-f", folder + "refused/blueprint.yaml"},
		Code:      1,
		Mentions:  []string{"server", "maxConnections", "settings", "endpiont"},
		Unchanged: true,
		Holds: all(
			gone(provider, Blueprints, "caches"),
			refused(provider, Blueprints, folder+"refused/blueprint.yaml", 422),
		),
	}}}
}

// ending takes everything away.
func ending() Chapter {
	return Chapter{Title: "8. The end of it", Steps: []Step{
		{
			Says:     "A blueprint that has instances is not deleted.",
			As:       provider,
			Args:     []string{"delete", "rgd", "databases", "--wait=false"},
			Code:     1,
			Mentions: []string{"2"},
			Holds:    exist(provider, Blueprints, "databases"),
		},
		{
			Says: "Deleting an instance deletes its children in both workspaces, in the reverse of the order in which they came, and then itself.",
			As:   consumer,
			Args: []string{"delete", "database", "orders", "--timeout=60s"},
			Holds: all(
				gone(consumer, Databases, "orders"),
				count(consumer, ConfigMaps, 0), count(consumer, Secrets, 0),
				gone(provider, Servers, "$server"),
				count(provider, Servers, 1), count(provider, Secrets, 1),
				exist(consumer2, Databases, "orders"),
			),
		},
		{
			As:   consumer2,
			Args: []string{"delete", "databases", "--all", "--timeout=60s"},
			Holds: all(
				count(consumer2, Databases, 0), count(consumer2, ConfigMaps, 0), count(consumer2, Secrets, 0),
				count(provider, Servers, 0), count(provider, Secrets, 0),
			),
		},
		{
			Says: "Now the blueprint can go, and with it what was published.",
			As:   provider,
			Args: []string{"delete", "rgd", "databases", "--timeout=60s"},
			Holds: all(
				gone(provider, Blueprints, "databases"),
				soon(gone(provider, Exports, "databases.db.example.org")),
			),
		},
	}}
}
