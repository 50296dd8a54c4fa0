package story

// machines is the folder of the example that reaches the host.
const machines = "examples/vm/"

// acceptVPCs accepts the one claim whose identity no file can know.
const acceptVPCs = `[{"op":"add","path":"/spec/permissionClaims/-","value":{"group":"network.example.org","resource":"vpcs",` +
	`"identityHash":"$identity","verbs":["get","list","watch"],"state":"Accepted","selector":{"matchAll":true}}}]`

// onHost is an offering across three planes: it reads a network of the consumer's and makes a machine on the host.
func onHost() Chapter {
	steps := append(offerMachines(), bindMachines()...)
	return Chapter{Title: "7. From the consumer's network to a machine on the host, and back", Steps: append(steps, useMachine()...)}
}

func offerMachines() []Step {
	return []Step{
		{
			Says: "The host is a Kubernetes cluster apart from kcp. Its operator has VMs there, and lets krop compose them.",
			As:   host,
			Args: []string{"apply", "-f", machines + "host"},
		},
		{
			As:   host,
			Args: []string{"wait", "--for=condition=Established", "crd/vms.compute.example.org"},
		},
		{
			Says: "The provider exports networks, an API like any other on kcp, and binds it in its own workspace too.",
			As:   provider,
			Args: []string{"apply", "-f", machines + "provider/10-vpc-api.yaml", "-f", machines + "provider/20-vpc-binding.yaml"},
		},
		{
			As:    provider,
			Args:  []string{"wait", "--for=condition=Ready", "apibinding/vpcs", "--timeout=60s"},
			Holds: soon(count(provider, VPCs, 0)),
		},
		{
			Says: "A machine is made on the host, from a network that it finds with the consumer.",
			As:   provider,
			Args: []string{"apply", "-f", machines + "provider/30-blueprint.yaml"},
		},
		{
			As:   provider,
			Args: []string{"wait", "--for=condition=Ready", "rgd/machines", "--timeout=30s"},
		},
	}
}

func bindMachines() []Step {
	return []Step{
		{
			Says: "The consumer takes both APIs,",
			As:   consumer,
			Args: []string{"apply", "-f", machines + "consumer/10-vpc-binding.yaml", "-f", machines + "consumer/20-machine-binding.yaml"},
		},
		{
			As:   consumer,
			Args: []string{"wait", "--for=condition=Ready", "apibinding/vpcs", "apibinding/machines", "--timeout=60s"},
		},
		{
			Says: "and lets krop read its networks, and no more than that.",
			As:   consumer,
			Args: []string{"get", "apibinding", "vpcs", "-o", "jsonpath={.status.boundResources[0].schema.identityHash}"},
			Keep: "identity",
		},
		{
			As:   consumer,
			Args: []string{"patch", "apibinding", "machines", "--type=json", "-p", acceptVPCs},
		},
		{
			As: consumer,
			Args: []string{
				"wait", `--for=jsonpath={.status.appliedPermissionClaims[?(@.resource=="vpcs")].resource}=vpcs`,
				"apibinding/machines", "--timeout=60s",
			},
		},
	}
}

func useMachine() []Step {
	return []Step{
		{
			Says: "A network, and a machine in it. The network has no id yet, so the machine waits for that.",
			As:   consumer,
			Args: []string{"apply", "-f", machines + "consumer/main-vpc.yaml", "-f", machines + "consumer/web-machine.yaml"},
			Holds: all(
				soon(rowOf(consumer, Machines, "web", "vm", "Pending", "vpc.status.vpcId")),
				count(host, VMs, 0), gone(consumer, ConfigMaps, "web-access"),
			),
		},
		{
			Says:  "Whatever runs networks (played by hand here) gives it one. That reaches the host by itself.",
			As:    consumer,
			Args:  []string{"patch", "vpc", "main", "--subresource=status", "--type=merge", "-p", `{"status":{"vpcId":"vpc-17"}}`},
			Holds: soon(count(host, VMs, 1)),
		},
		{
			As:       host,
			Args:     []string{"get", "vms"},
			Mentions: []string{"web-", "vpc-17"},
		},
		{
			As:    host,
			Args:  []string{"get", "vms", "-o", "jsonpath={.items[0].metadata.name}"},
			Keep:  "vm",
			Holds: field(host, VMs, "$vm", int64(4), "spec", "cpus"),
		},
		{
			Says: "The hypervisor starts the machine, and its address comes all the way back.",
			As:   host,
			Args: []string{"patch", "vm", "$vm", "--subresource=status", "--type=merge", "-p", `{"status":{"phase":"Running","address":"10.20.0.5"}}`},
		},
		{
			As:   consumer,
			Args: []string{"wait", "--for=condition=Ready", "machine/web", "--timeout=30s"},
			Holds: all(
				field(consumer, Machines, "web", "10.20.0.5", "status", "address"),
				field(consumer, Machines, "web", "vpc-17", "status", "vpcId"),
				field(consumer, ConfigMaps, "web-access", "10.20.0.5", "data", "address"),
			),
		},
		{
			As:       consumer,
			Args:     []string{"get", "machines,vpcs,configmaps"},
			Mentions: []string{"10.20.0.5", "vpc-17", "web-access"},
		},
		{
			Says: "With the machine goes what was made for it, and nothing else.",
			As:   consumer,
			Args: []string{"delete", "machine", "web", "--timeout=60s"},
			Holds: all(
				count(host, VMs, 0), gone(consumer, ConfigMaps, "web-access"),
				exist(consumer, VPCs, "main"),
			),
		},
		{
			As:    provider,
			Args:  []string{"delete", "rgd", "machines", "--timeout=60s"},
			Holds: gone(provider, Blueprints, "machines"),
		},
	}
}
