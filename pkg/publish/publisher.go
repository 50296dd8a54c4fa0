package publish

import (
	"context"
	"fmt"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
)

// Publisher writes what kcp needs to offer blueprints into their workspaces, as krop's user. Safe for
// concurrent use, also by several replicas.
type Publisher struct{ kcp *kcp }

// New makes a Publisher. It does not connect.
func New(config Config) (*Publisher, error) {
	k, err := newKCP(config)
	if err != nil {
		return nil, err
	}
	if _, err := parseURL(config.ExternalURL); err != nil {
		return nil, fmt.Errorf("krop's address for shards: %w", err)
	}
	return &Publisher{kcp: k}, nil
}

// Publish offers the program's kind as an APIExport of the blueprint's workspace, with these claims, and
// returns the export's identity. It is idempotent and writes nothing if everything is as it should be.
// Existing bindings pick up a changed schema by themselves; a changed claim has to be accepted by each
// consumer.
//
// It fails with an UnpreparedError (a 403) if krop's user lacks rights in the workspace, and with Conflict
// if the export belongs to somebody else.
func (p *Publisher) Publish(ctx context.Context, program *engine.Program, claims []v1alpha1.PermissionClaim) (identityHash string, err error) {
	done, err := publish(ctx, p.kcp, offerOf(program, claims), forReal)
	return done.identityHash, err
}

// Check fails as Publish would, and writes nothing: it asks kcp for the same writes as a dry-run.
func (p *Publisher) Check(ctx context.Context, program *engine.Program) error {
	_, err := publish(ctx, p.kcp, offerOf(program, nil), dryRun)
	return err
}

// CheckOwner fails with Conflict if the export exists and isn't the blueprint's.
func (p *Publisher) CheckOwner(ctx context.Context, export v1alpha1.ExportKey, blueprint string) error {
	w, err := p.kcp.workspace(export.Cluster.Path())
	if err != nil {
		return err
	}
	_, err = ownedExport(ctx, w, offer{export: export, owner: engine.BlueprintLabel(blueprint)})
	return err
}

// mode says whether writes take effect; it is the value of their option.
type mode []string

var (
	forReal = mode(nil)
	dryRun  = mode{metav1.DryRunAll}
)

// published says what publish has done.
type published struct {
	identityHash string // empty after a dry-run of a new export
	changed      bool   // something had to be written
}

func publish(ctx context.Context, k *kcp, o offer, m mode) (published, error) {
	w, err := k.workspace(o.export.Cluster.Path())
	if err != nil {
		return published{}, err
	}
	existing, err := ownedExport(ctx, w, o)
	if err != nil {
		return published{}, err
	}
	// The export comes last: as soon as it is there, what it refers to is used.
	schema, newSchema, err := ensureSchema(ctx, w, o, m)
	if err != nil {
		return published{}, err
	}
	newSlice, err := ensureSlice(ctx, w, o, sliceWrite{url: ServiceURL(k.external, o.export), mode: m})
	if err != nil {
		return published{}, err
	}
	export, newExport, err := ensureExport(ctx, w, o, exportWrite{existing: existing, schema: schema, mode: m})
	if err != nil {
		return published{}, err
	}
	done := published{identityHash: export.Status.IdentityHash, changed: newSchema || newSlice || newExport}
	if m != nil {
		return done, nil
	}
	if existing != nil && newExport {
		if err := deleteSchemas(ctx, w, schemasOf{kind: o.crd.Name, owner: o.owner}, kept(existing, schema)...); err != nil {
			return done, err
		}
	}
	if done.identityHash == "" {
		done.identityHash, err = waitForIdentity(ctx, w, o.export)
	}
	return done, err
}

// kept are the schemas that an edit leaves in place: that which is offered now and, for bindings that kcp has
// yet to bring up to date, that which was offered before. So a blueprint that is edited often keeps two.
func kept(before *apisv1alpha2.APIExport, schema string) []string {
	keep := []string{schema}
	for _, resource := range before.Spec.Resources {
		keep = append(keep, resource.Schema)
	}
	return keep
}

const (
	// identityPoll is how often a new export is looked at. kcp gives it an identity within a fraction of a second.
	identityPoll = 50 * time.Millisecond
	// identityPatience is below the 5 s in which a blueprint should be ready.
	identityPatience = 4 * time.Second
)

// waitForIdentity waits until kcp has given the export an identity.
func waitForIdentity(ctx context.Context, w *workspace, export v1alpha1.ExportKey) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, identityPatience)
	defer cancel()
	for {
		identity, err := identityOf(ctx, w, export)
		if identity != "" || err != nil && ctx.Err() == nil {
			return identity, err
		}
		select {
		case <-ctx.Done():
			message := fmt.Sprintf("kcp has not given the APIExport %s an identity yet", export.Name)
			return "", apierrors.NewTimeoutError(message, 1)
		case <-time.After(identityPoll):
		}
	}
}

func identityOf(ctx context.Context, w *workspace, export v1alpha1.ExportKey) (string, error) {
	found, err := w.kcp.ApisV1alpha2().APIExports().Get(ctx, export.Name, metav1.GetOptions{})
	if err != nil {
		return "", explained(err, w.cluster, "get", apiExports)
	}
	return found.Status.IdentityHash, nil
}

// IdentityHash is the identity of an export, empty as long as kcp has not given it one.
func (p *Publisher) IdentityHash(ctx context.Context, export v1alpha1.ExportKey) (string, error) {
	w, err := p.kcp.workspace(export.Cluster.Path())
	if err != nil {
		return "", err
	}
	return identityOf(ctx, w, export)
}

// Home is the key of krop's own export, that of the blueprint kind. It is read from kcp: its logical cluster
// is known to no flag.
func (p *Publisher) Home(ctx context.Context) (v1alpha1.ExportKey, error) {
	w, err := p.kcp.workspace(p.kcp.home)
	if err != nil {
		return v1alpha1.ExportKey{}, err
	}
	export, err := w.kcp.ApisV1alpha2().APIExports().Get(ctx, HomeExport, metav1.GetOptions{})
	if err != nil {
		return v1alpha1.ExportKey{}, fmt.Errorf("krop's own export in %s (see krop bootstrap): %w", p.kcp.home, err)
	}
	return v1alpha1.ExportKey{Cluster: logicalcluster.From(export), Name: HomeExport}, nil
}
