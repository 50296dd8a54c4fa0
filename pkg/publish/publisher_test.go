package publish_test

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/publish"
	"go.opendefense.cloud/krop/test/testbed"
)

// versions are the resourceVersions of everything that publishing the program writes in root:provider.
func (w *world) versions(t *testing.T, program *engine.Program) string {
	t.Helper()
	return w.kubectl(t, testbed.Provider, "get", "-l", v1alpha1.LabelBlueprint+"="+program.Blueprint, "apiexports,apiresourceschemas,blueprintendpointslices.endpoints.krop.opendefense.cloud",
		"-o", `jsonpath={range .items[*]}{.kind}/{.metadata.name}@{.metadata.resourceVersion}{"\n"}{end}`)
}

func TestPublishingAgainWritesNothing(t *testing.T) {
	w := start(t)
	program := w.program(t, "stables", "Stable")
	claims := w.publishAll(t, program)
	publisher := w.publisher(t)
	before := w.versions(t, program)
	identity, err := publisher.Publish(t.Context(), program, claims)
	if err != nil {
		t.Fatal(err)
	}
	if after := w.versions(t, program); before != after {
		t.Errorf("versions changed from\n%s\nto\n%s", before, after)
	}
	if identity == "" {
		t.Error("the export has no identity")
	}
	if found, err := publisher.IdentityHash(t.Context(), program.Export); err != nil || found != identity {
		t.Errorf("got identity %q, %v, want %q", found, err, identity)
	}
}

func TestUnpublishRemovesAllThatWasPublished(t *testing.T) {
	w := start(t)
	program := w.program(t, "passings", "Passing")
	publisher := w.publisher(t)
	if _, err := publisher.Publish(t.Context(), program, nil); err != nil {
		t.Fatal(err)
	}
	if w.versions(t, program) == "" {
		t.Fatal("nothing was published")
	}
	for range 2 { // the second time finds nothing
		if err := publisher.Unpublish(t.Context(), program.Export, program.Blueprint); err != nil {
			t.Fatal(err)
		}
	}
	if left := w.versions(t, program); left != "" {
		t.Errorf("left: %s", left)
	}
}

func TestCheckWritesNothing(t *testing.T) {
	w := start(t)
	program := w.program(t, "drafts", "Draft")
	if err := w.publisher(t).Check(t.Context(), program); err != nil {
		t.Fatal(err)
	}
	if written := w.versions(t, program); written != "" {
		t.Errorf("written: %s", written)
	}
}

func TestAnUnpreparedWorkspaceIsNamedWithTheManifestToApply(t *testing.T) {
	w := start(t)
	program := w.program(t, "strangers", "Stranger")
	program.Export.Cluster = w.cluster(t, testbed.Consumer2)
	for name, err := range map[string]error{
		"check": w.publisher(t).Check(t.Context(), program),
		"publish": func() error {
			_, err := w.publisher(t).Publish(t.Context(), program, nil)
			return err
		}(),
	} {
		var unprepared *publish.UnpreparedError
		if !errors.As(err, &unprepared) {
			t.Fatalf("%s: got %v, want an UnpreparedError", name, err)
		}
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: got %v, want Forbidden", name, err)
		}
		if message := unprepared.Status().Message; !strings.Contains(message, "manifests/provider") {
			t.Errorf("%s: the message does not name the manifest: %s", name, message)
		}
	}
}

func TestAnExportOfSomebodyElseIsLeftAlone(t *testing.T) {
	w := start(t)
	program := w.program(t, "orphans", "Orphan")
	w.apply(t, testbed.Provider, "apiVersion: apis.kcp.io/v1alpha2\nkind: APIExport\nmetadata: {name: "+program.Export.Name+"}\n")
	publisher := w.publisher(t)
	if _, err := publisher.Publish(t.Context(), program, nil); !apierrors.IsConflict(err) {
		t.Errorf("got %v, want Conflict", err)
	}
	if err := publisher.Unpublish(t.Context(), program.Export, program.Blueprint); err != nil {
		t.Error(err)
	}
	w.kubectl(t, testbed.Provider, "delete", "apiexport", program.Export.Name) // fails if it is gone
}

func TestTwoBlueprintsCannotPublishOneKind(t *testing.T) {
	w := start(t)
	first := w.program(t, "twins", "Twin")
	w.publishAll(t, first)
	second := w.program(t, "twins", "Twin")
	second.Blueprint = "another"
	if err := w.publisher(t).Check(t.Context(), second); !apierrors.IsConflict(err) {
		t.Errorf("got %v, want Conflict", err)
	}
}

func TestConsumersReachKropThroughTheirBinding(t *testing.T) {
	w := start(t)
	program := w.program(t, "webapps", "WebApp")
	w.bind(t, testbed.Consumer, program.Export.Name, w.publishAll(t, program))
	w.kubectl(t, testbed.Consumer, "get", "webapps")
	want := "GET " + publish.ServicePrefix + "/" + program.Export.String() + "/clusters/" + w.cluster(t, testbed.Consumer).String() +
		"/apis/demo.example.org/v1alpha1/namespaces/default/webapps"
	if ok, asked := w.standIn.saw(want); !ok {
		t.Errorf("kcp did not ask\n%s\nbut\n%s", want, asked)
	}
	if explained := w.kubectl(t, testbed.Consumer, "explain", "webapps.spec.size"); !strings.Contains(explained, "integer") {
		t.Errorf("kubectl explain does not know the schema: %s", explained)
	}
}

func TestBoundConsumersPickUpAChangedSchema(t *testing.T) {
	w := start(t)
	program := w.program(t, "shifters", "Shifter")
	claims := w.publishAll(t, program)
	w.bind(t, testbed.Consumer, program.Export.Name, claims)

	changed := *program
	changed.SpecHash = "fedcba9876543210"
	changed.CRD = definition("shifters", "Shifter", "string")
	if _, err := w.publisher(t).Publish(t.Context(), &changed, claims); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the binding has the changed schema", func() (bool, string) {
		name := w.kubectl(t, testbed.Consumer, "get", "apibinding", program.Export.Name, "-o", "jsonpath={.status.boundResources[0].schema.name}")
		return strings.HasPrefix(name, "v"+changed.SpecHash+"."), name
	})
	w.kubectl(t, testbed.Consumer, "get", "shifters")
}

func TestEditsKeepTheSchemaOfTodayAndThatOfYesterday(t *testing.T) {
	w := start(t)
	program := w.program(t, "edits", "Edit")
	claims := w.publishAll(t, program)
	for _, hash := range []string{"1111111111111111", "2222222222222222", "3333333333333333"} {
		edited := *program
		edited.SpecHash = hash
		if _, err := w.publisher(t).Publish(t.Context(), &edited, claims); err != nil {
			t.Fatal(err)
		}
	}
	got := w.kubectl(t, testbed.Provider, "get", "apiresourceschemas", "-l", v1alpha1.LabelBlueprint+"=edits", "-o", "jsonpath={.items[*].metadata.name}")
	if want := "v2222222222222222.edits.demo.example.org v3333333333333333.edits.demo.example.org"; got != want {
		t.Errorf("got schemas %s, want %s", got, want)
	}
}

func TestEachMissingPieceOfThePreparationIsNamed(t *testing.T) {
	w := start(t)
	const stranger = testbed.User("halfprepared")
	if err := w.bed.AddUser(t.Context(), stranger); err != nil {
		t.Fatal(err)
	}
	program := w.program(t, "halves", "Half")
	program.Export.Cluster = w.cluster(t, stranger)
	for _, step := range []struct {
		apply   string
		missing schema.GroupResource
	}{
		{"30-krop-rights.yaml", schema.GroupResource{Group: "cache.kcp.io", Resource: "cachedresources"}},
		{"20-cachedresource.yaml", schema.GroupResource{Group: "endpoints.krop.opendefense.cloud", Resource: "blueprintendpointslices"}},
	} {
		w.kubectl(t, stranger, "apply", "-f", "../../manifests/provider/"+step.apply)
		eventually(t, "what is missing is named", func() (bool, string) {
			err := w.publisher(t).Check(t.Context(), program)
			var unprepared *publish.UnpreparedError
			return errors.As(err, &unprepared) && unprepared.Resource == step.missing, errorText(err)
		})
	}
	w.kubectl(t, stranger, "apply", "-f", "../../manifests/provider")
	eventually(t, "the workspace is prepared", func() (bool, string) {
		err := w.publisher(t).Check(t.Context(), program)
		return err == nil, errorText(err)
	})
}

func TestASchemaOfTheSameSpecWithOtherContentGetsAnotherName(t *testing.T) {
	w := start(t)
	program := w.program(t, "upgrades", "Upgrade")
	claims := w.publishAll(t, program)
	upgraded := *program
	upgraded.CRD = definition("upgrades", "Upgrade", "string")
	if _, err := w.publisher(t).Publish(t.Context(), &upgraded, claims); err != nil {
		t.Fatal(err)
	}
	offered := w.kubectl(t, testbed.Provider, "get", "apiexport", program.Export.Name, "-o", "jsonpath={.spec.resources[0].schema}")
	if !strings.HasPrefix(offered, "v"+program.SpecHash+"-") {
		t.Errorf("the export offers %s", offered)
	}
}

func TestABlueprintCannotWithdrawWhatAnotherHasPublished(t *testing.T) {
	w := start(t)
	winner := w.program(t, "winnings", "Winning")
	w.publishAll(t, winner)
	before := w.versions(t, winner)
	publisher := w.publisher(t)
	if err := publisher.Unpublish(t.Context(), winner.Export, "loser"); err != nil {
		t.Error(err)
	}
	if after := w.versions(t, winner); before != after {
		t.Errorf("versions changed from\n%s\nto\n%s", before, after)
	}
	if err := publisher.CheckOwner(t.Context(), winner.Export, "loser"); !apierrors.IsConflict(err) {
		t.Errorf("got %v, want Conflict", err)
	}
	if err := publisher.CheckOwner(t.Context(), winner.Export, winner.Blueprint); err != nil {
		t.Error(err)
	}
}

func TestPublishingAgainRepairsWhatWasTakenAway(t *testing.T) {
	w := start(t)
	program := w.program(t, "repairs", "Repair")
	claims := w.publishAll(t, program)
	for _, object := range []string{"apiexport", "blueprintendpointslices.endpoints.krop.opendefense.cloud"} {
		w.kubectl(t, testbed.Provider, "delete", object, program.Export.Name)
		identity, err := w.publisher(t).Publish(t.Context(), program, claims)
		if err != nil || identity == "" {
			t.Errorf("%s: identity %q, %v", object, identity, err)
		}
		w.kubectl(t, testbed.Provider, "get", object, program.Export.Name) // fails if it is gone
	}
}
