package story

// children is what shows the rows of an instance.
const children = `jsonpath={range .status.composition.resources[*]}{.id}{"\t"}{.target}{"\t"}{.kind}{"\t"}{.state}{"\t"}{.waitingFor}{"\n"}{end}`

// endpoint is what the provider's automation would find out about a server.
const endpoint = `{"status":{"endpoint":"db-1.infra.example.org","port":5432}}`

// using is what a consumer does first.
func using() Chapter {
	return Chapter{Title: "3. A consumer binds it and uses it", Steps: append(binding(), firstInstance()...)}
}

func binding() []Step {
	return []Step{
		{
			Says: "In another workspace, a consumer takes the API and accepts what it writes there.",
			As:   consumer,
			Args: []string{"apply", "-f", folder + "consumer/10-binding.yaml"},
		},
		{
			As:   consumer,
			Args: []string{"wait", "--for=condition=Ready", "apibinding/databases", "--timeout=60s"},
		},
		{
			As:       consumer,
			Args:     []string{"api-resources", "--api-group=db.example.org"},
			Mentions: []string{"databases", "db.example.org/v1alpha1", "Database"},
		},
		{
			As:       consumer,
			Args:     []string{"explain", "databases.spec"},
			Mentions: []string{"storage", "as a quantity", "backup"},
		},
	}
}

func firstInstance() []Step {
	return []Step{
		{
			Says: "When this returns, all that could be made is there, in both workspaces.",
			As:   consumer,
			Args: []string{"apply", "-f", folder + "consumer/orders.yaml"},
			Holds: all(
				exist(consumer, ConfigMaps, "orders-backup", "orders-login-shop", "orders-login-reports"),
				count(provider, Servers, 1), count(provider, Secrets, 1),
				gone(consumer, Secrets, "orders-connection"),
				gone(consumer, ConfigMaps, "orders-settings"),
			),
		},
		{
			Says:     "The rest waits, and says for what.",
			As:       consumer,
			Args:     []string{"get", "database", "orders", "-o", children},
			Mentions: []string{"server.status.endpoint"},
			Holds: all(
				child(consumer, "orders", "server", "Applied", "server.status.endpoint"),
				child(consumer, "orders", "setup", "Ready", ""),
				child(consumer, "orders", "backup", "Ready", ""),
				child(consumer, "orders", "connection", "Pending", "server.status.endpoint"),
				child(consumer, "orders", "settings", "Pending", "server.status.endpoint"),
				condition(consumer, Databases, "orders", "Ready", "False"),
				condition(consumer, Databases, "orders", "Progressing", "True"),
				field(consumer, Databases, "orders", int64(2), "status", "logins"),
			),
		},
		{
			Says: "Meanwhile the provider sees a server to run. Names there are made so that those of different consumers can't collide.",
			As:   provider,
			Args: []string{"get", "databaseservers,secrets"},
		},
		{
			As:   provider,
			Args: []string{"get", "databaseservers", "-o", "jsonpath={.items[0].metadata.name}"},
			Keep: "server",
		},
		{
			Says: "Its automation (played by hand here) starts the server and tells where it is.",
			As:   provider,
			Args: []string{"patch", "databaseserver", "$server", "--subresource=status", "--type=merge", "-p", endpoint},
		},
		{
			Says: "That reaches the consumer by itself: the rest appears.",
			As:   consumer,
			Args: []string{"wait", "--for=condition=Ready", "database/orders", "--timeout=30s"},
			Holds: all(
				secret(consumer, "orders-connection", "uri", "postgres://db-1.infra.example.org:5432/orders"),
				field(consumer, ConfigMaps, "orders-settings", "db-1.infra.example.org", "data", "host"),
				field(consumer, Databases, "orders", "db-1.infra.example.org", "status", "endpoint"),
				field(consumer, Databases, "orders", "ACTIVE", "status", "state"),
				child(consumer, "orders", "connection", "Ready", ""),
			),
		},
		{
			As:       consumer,
			Args:     []string{"get", "databases"},
			Mentions: []string{"ENDPOINT", "db-1.infra.example.org", "AllReady"},
		},
		{
			As:       consumer,
			Args:     []string{"get", "secret", "orders-connection", "-o", `go-template={{.data.uri | base64decode}}{{"\n"}}`},
			Mentions: []string{"postgres://db-1.infra.example.org:5432/orders"},
		},
	}
}
