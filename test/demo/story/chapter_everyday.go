package story

// everyday is what people do with objects all day.
func everyday() Chapter {
	return Chapter{Title: "5. Every day", Steps: append(changes(), serverSideApply()...)}
}

func changes() []Step {
	return []Step{
		{
			Says:      "A dry run goes all the way, children included, and writes nothing.",
			As:        consumer,
			Args:      []string{"apply", "--dry-run=server", "-f", folder + "consumer/orders-one-login.yaml"},
			Mentions:  []string{"server dry run"},
			Unchanged: true,
		},
		{
			Says:      "So does a diff.",
			As:        consumer,
			Args:      []string{"diff", "-f", folder + "consumer/orders-one-login.yaml"},
			Code:      1,
			Mentions:  []string{"-  - reports"},
			Unchanged: true,
		},
		{
			Says:  "A change reaches the child on the other side before the command returns.",
			As:    consumer,
			Args:  []string{"patch", "database", "orders", "--type=merge", "-p", `{"spec":{"connections":50}}`},
			Holds: field(provider, Servers, "$server", int64(50), "spec", "maxConnections"),
		},
		{
			Says: "One user less: the login that nobody wants any more goes away.",
			As:   consumer,
			Args: []string{"apply", "-f", folder + "consumer/orders-one-login.yaml"},
			Holds: all(
				soon(gone(consumer, ConfigMaps, "orders-login-reports")),
				exist(consumer, ConfigMaps, "orders-login-shop"),
				soon(field(consumer, Databases, "orders", int64(1), "status", "logins")),
			),
		},
		{
			Says: "The backup is optional. Without it, its object goes too.",
			As:   consumer,
			Args: []string{"patch", "database", "orders", "--type=merge", "-p", `{"spec":{"backup":{"enabled":false}}}`},
			Holds: all(
				soon(gone(consumer, ConfigMaps, "orders-backup")),
				soon(child(consumer, "orders", "backup", "Ignored", "")),
			),
		},
		{
			Says:  "What somebody deletes by hand comes back.",
			As:    consumer,
			Args:  []string{"delete", "configmap", "orders-login-shop"},
			Holds: soon(field(consumer, ConfigMaps, "orders-login-shop", "shop", "data", "login")),
		},
	}
}

func serverSideApply() []Step {
	return []Step{
		{
			Says: "Server-side apply works as everywhere. One team owns the size,",
			As:   consumer,
			Args: []string{"apply", "--server-side", "--field-manager=team-a", "-f", folder + "consumer/reports.yaml"},
		},
		{
			Says:      "another one is told so,",
			As:        consumer,
			Args:      []string{"apply", "--server-side", "--field-manager=team-b", "-f", folder + "consumer/reports-large.yaml"},
			Code:      1,
			Mentions:  []string{"conflict", "team-a", ".spec.size"},
			Unchanged: true,
		},
		{
			Says: "and may insist.",
			As:   consumer,
			Args: []string{
				"apply", "--server-side", "--field-manager=team-b", "--force-conflicts",
				"-f", folder + "consumer/reports-large.yaml",
			},
			Holds: all(
				field(consumer, Databases, "reports", "large", "spec", "size"),
				managedBy(consumer, "reports", "team-b", "size"),
			),
		},
		{
			As:   consumer,
			Args: []string{"delete", "database", "reports", "--timeout=60s"},
			Holds: all(
				gone(consumer, Databases, "reports"), gone(consumer, ConfigMaps, "reports-login-bi"),
				count(provider, Servers, 1),
			),
		},
	}
}

// apart shows that consumers don't see each other.
func apart() Chapter {
	return Chapter{Title: "6. Consumers are apart", Steps: []Step{
		{
			Says: "The second consumer accepts the claims, and has a database of the same name.",
			As:   consumer2,
			Args: []string{"apply", "-f", folder + "consumer/10-binding.yaml"},
		},
		{
			As: consumer2,
			Args: []string{
				"wait", `--for=jsonpath={.status.appliedPermissionClaims[?(@.resource=="secrets")].resource}=secrets`,
				"apibinding/databases", "--timeout=60s",
			},
		},
		{
			As:   consumer2,
			Args: []string{"apply", "-f", folder + "consumer/orders.yaml"},
			Holds: all(
				count(consumer2, ConfigMaps, 3), count(provider, Servers, 2),
				exist(provider, Servers, "$server"),
			),
		},
		{
			Says:  "Each sees its own,",
			As:    consumer2,
			Args:  []string{"get", "databases,configmaps"},
			Holds: all(count(consumer, Databases, 1), count(consumer2, Databases, 1), differentUIDs("orders")),
		},
		{
			Says:     "and nobody else's.",
			As:       consumer2,
			Args:     []string{"get", "databases", "--server=$consumer"},
			Code:     1,
			Mentions: []string{"orbidden"},
		},
	}}
}
