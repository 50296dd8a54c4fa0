package main

import (
	"context"
	"fmt"
)

// hostCreates compares an instance with five children on the host to a client that makes the same calls there. Krop
// stores the instance in between, for the consumer who waits behind kcp; a client that has to keep what it was asked
// for as well stores a ConfigMap through the same kcp. Krop then stores its status too, which neither client does.
func (b *bench) hostCreates(ctx context.Context, much size) error {
	return b.compare("Create with five children on the host", 1.5, much.operations,
		operation{"instance with five children", func(i int) error {
			return create(ctx, b.consumer, hosteds, instance("Hosted", fmt.Sprintf("hosted-%d", i)))
		}},
		operation{"hand-written client that keeps one object in kcp", func(i int) error {
			name := fmt.Sprintf("host-kept-%d", i)
			return byHand(ctx, b.host, name, func() error { return create(ctx, b.consumer, configMaps, configMap(name)) })
		}},
		operation{"hand-written client of the host alone", func(i int) error {
			return byHand(ctx, b.host, fmt.Sprintf("host-hand-%d", i))
		}})
}
