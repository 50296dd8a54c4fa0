package main

import (
	"context"
	_ "embed"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"go.opendefense.cloud/krop/test/testbed"
)

//go:embed blueprints.yaml
var blueprints string

//go:embed binding.yaml
var bindings string

// namespace that everything is created in.
const namespace = "default"

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	bares      = schema.GroupVersionResource{Group: "bench.example.org", Version: "v1", Resource: "bares"}
	fives      = schema.GroupVersionResource{Group: "bench.example.org", Version: "v1", Resource: "fives"}
	hosteds    = schema.GroupVersionResource{Group: "bench.example.org", Version: "v1", Resource: "hosteds"}
	mirrors    = schema.GroupVersionResource{Group: "bench.example.org", Version: "v1", Resource: "mirrors"}
)

// bench is the test bed with everything published and bound.
type bench struct {
	bed      *testbed.Bed
	provider dynamic.Interface // the provider in its workspace
	consumer dynamic.Interface // the consumer in its own, through kcp
	virtual  dynamic.Interface // the consumer's workspace, through the virtual workspace that krop writes through
	host     dynamic.Interface // the host's administrator
}

func prepare(ctx context.Context, bed *testbed.Bed) (*bench, error) {
	provider, consumer := bed.Kubectl(testbed.Provider), bed.Kubectl(testbed.Consumer)
	if _, err := provider.Apply(ctx, blueprints); err != nil {
		return nil, err
	}
	if _, err := provider.Run(ctx, "wait", "--for=condition=Ready", "rgd", "--all", "--timeout=60s"); err != nil {
		return nil, err
	}
	if _, err := consumer.Apply(ctx, bindings); err != nil {
		return nil, err
	}
	wait := []string{"wait", "--for=jsonpath={.status.phase}=Bound", "apibinding/bares", "apibinding/fives", "apibinding/hosteds", "apibinding/mirrors", "--timeout=60s"}
	if _, err := consumer.Run(ctx, wait...); err != nil {
		return nil, err
	}
	b := &bench{bed: bed}
	return b, b.connect(ctx)
}

func (b *bench) connect(ctx context.Context) (err error) {
	provider, err := b.bed.Config(testbed.Provider)
	if err != nil {
		return err
	}
	consumer, err := b.bed.Config(testbed.Consumer)
	if err != nil {
		return err
	}
	host, err := b.bed.Config(testbed.Host)
	if err != nil {
		return err
	}
	virtual, err := b.virtualConfig(ctx, provider)
	if err != nil {
		return err
	}
	for _, client := range []struct {
		config *rest.Config
		to     *dynamic.Interface
	}{{provider, &b.provider}, {consumer, &b.consumer}, {virtual, &b.virtual}, {host, &b.host}} {
		if *client.to, err = dynamic.NewForConfig(client.config); err != nil {
			return fmt.Errorf("client: %w", err)
		}
	}
	return nil
}

// virtualConfig is the way that krop takes to the consumer: the virtual workspace of the export.
func (b *bench) virtualConfig(ctx context.Context, provider *rest.Config) (*rest.Config, error) {
	exports, err := b.bed.Cluster(ctx, testbed.Provider)
	if err != nil {
		return nil, err
	}
	target, err := b.bed.Cluster(ctx, testbed.Consumer)
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(provider)
	config.Host = fmt.Sprintf("%s/services/apiexport/%s/%s/clusters/%s",
		hostOf(provider.Host), exports, fives.GroupResource(), target)
	return config, nil
}
