package story

import "go.opendefense.cloud/krop/test/testbed"

// refusals are the ways in which an instance can be wrong. Each leaves every plane as it was.
func refusals() Chapter {
	return Chapter{Title: "4. What is wrong is refused, by name, and leaves nothing behind", Steps: []Step{
		refusal("A field of the wrong type.", consumer, "refused/wrong-type.yaml", 422,
			[]string{"spec.connections"}, "spec.connections", "integer"),
		refusal("A rule of the blueprint that is violated.", consumer, "refused/rule-violated.yaml", 422,
			[]string{"spec.users"}, "spec.users", "admin"),
		refusal("An expression of the blueprint that fails on this input: which one, and which field it reads.", consumer,
			"refused/expression-fails.yaml", 422, []string{"spec.storage"}, "server", "quantity", "spec.storage"),
		refusal("Children that their own APIs refuse, one in the provider's workspace and one in the consumer's. Both answers come back.",
			consumer, "refused/child-refused.yaml", 422, nil, "server", "maxConnections", "500", "logins", "child-refused-login-Bob"),
		{
			Says: "A second consumer binds, and does not let krop write Secrets.",
			As:   consumer2,
			Args: []string{"apply", "-f", folder + "consumer/binding-without-secrets.yaml"},
		},
		{
			As:   consumer2,
			Args: []string{"wait", "--for=jsonpath={.status.phase}=Bound", "apibinding/databases", "--timeout=60s"},
		},
		refusal("The one Secret could not be written yet anyway, since the server has no endpoint; all the same the answer names the claim to accept. The provider's workspace is untouched as well.", consumer2,
			"consumer/orders.yaml", 403, nil, "connection", "secrets", "claim"),
	}}
}

// refusal applies a file and expects an answer with a code, causes that name fields, and mentions of names.
func refusal(says string, as testbed.User, file string, code int32, fields []string, mentions ...string) Step {
	return Step{
		Says:      says,
		As:        as,
		Args:      []string{"apply", "-f", folder + file},
		Code:      1,
		Mentions:  mentions,
		Unchanged: true,
		Holds:     refused(as, Databases, folder+file, code, fields...),
	}
}
