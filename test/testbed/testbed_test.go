package testbed_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.opendefense.cloud/krop/test/testbed"
)

// TestTheTestBedWithoutKrop boots kcp and the host twice in one folder: the second start must find the first's data.
func TestTheTestBedWithoutKrop(t *testing.T) {
	options := testbed.Options{Dir: t.TempDir(), WithoutKrop: true, Progress: t.Output()}
	first := start(t, options)
	t.Run("UsersRuleTheirWorkspaceAndNothingElse", func(t *testing.T) { usersRuleTheirWorkspace(t, first) })
	t.Run("KcpAndTheHostKnowOnlyTheirOwnUsers", func(t *testing.T) { serversKnowTheirUsers(t, first) })
	t.Run("LogsAreTheOwnersAlone", func(t *testing.T) { privateLogs(t, first) })
	t.Run("AFolderIsTakenWhileItsTestBedRuns", func(t *testing.T) { folderIsTaken(t, options) })
	for _, user := range []testbed.User{testbed.Consumer, testbed.Host} {
		run(t, first, user, "create", "configmap", "kept")
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	second := start(t, options)
	for _, user := range []testbed.User{testbed.Consumer, testbed.Host} {
		run(t, second, user, "get", "configmap", "kept")
	}
}

func usersRuleTheirWorkspace(t *testing.T, bed *testbed.Bed) {
	tenants := []testbed.User{testbed.Provider, testbed.Consumer, testbed.Consumer2}
	for _, user := range tenants {
		for _, owner := range append(tenants, testbed.Admin) {
			_, err := bed.Kubectl(user).Run(t.Context(), "get", "secrets", "--server", workspaceURL(t, bed, owner))
			if allowed := err == nil; allowed != (user == owner) {
				t.Errorf("%s may read secrets in %s: %t (%v)", user, owner.Workspace(), allowed, err)
			}
		}
		run(t, bed, user, "create", "clusterrole", "own", "--verb=get", "--resource=secrets")
		run(t, bed, testbed.Admin, "get", "clusterrole", "own", "--server", workspaceURL(t, bed, user))
	}
}

func serversKnowTheirUsers(t *testing.T, bed *testbed.Bed) {
	for user, other := range map[testbed.User]testbed.User{testbed.Host: testbed.Admin, testbed.Admin: testbed.Host} {
		_, err := bed.Kubectl(user).Run(t.Context(), "get", "namespaces", "--server", workspaceURL(t, bed, other))
		var failed *testbed.CommandError
		if !errors.As(err, &failed) || !strings.Contains(failed.Stderr, "must be logged in") {
			t.Errorf("%s at the server of %s: %v", user, other, err)
		}
	}
}

func folderIsTaken(t *testing.T, options testbed.Options) {
	var inUse *testbed.InUseError
	if bed, err := testbed.Start(t.Context(), options); err == nil {
		t.Errorf("a second test bed runs in %s", options.Dir)
		_ = bed.Stop()
	} else if !errors.As(err, &inUse) {
		t.Errorf("a second test bed is refused for %v", err)
	}
	if err := testbed.RemoveData(options.Dir); !errors.As(err, &inUse) {
		t.Errorf("data is removed under a test bed that runs: %v", err)
	}
}

func privateLogs(t *testing.T, bed *testbed.Bed) {
	logs, err := filepath.Glob(filepath.Join(bed.Dir(), "logs", "*"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("no logs, %v", err)
	}
	for _, log := range logs {
		if info, err := os.Stat(log); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s is %s, %v", log, info.Mode(), err)
		}
	}
}

func TestAPortThatIsTakenIsNamed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	port := listener.Addr().(*net.TCPAddr).Port
	dir := filepath.Join(t.TempDir(), "new")
	_, err = testbed.Start(t.Context(), testbed.Options{Dir: dir, BasePort: port, WithoutKrop: true})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprint(port)) {
		t.Errorf("error is %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder of a start that was refused is left: %v", err)
	}
}

func TestRemovingDataLeavesWhatIsNotTheTestBeds(t *testing.T) {
	dir := t.TempDir()
	notes := filepath.Join(dir, "notes.txt")
	for _, file := range []string{notes, filepath.Join(dir, "lock"), filepath.Join(dir, "admin.kubeconfig")} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := testbed.RemoveData(dir); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 1 || left[0] != notes {
		t.Errorf("left is %v, error %v", left, err)
	}
}

func start(t *testing.T, options testbed.Options) *testbed.Bed {
	t.Helper()
	bed, err := testbed.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bed.Stop(); err != nil {
			t.Error(err)
		}
	})
	return bed
}

func run(t *testing.T, bed *testbed.Bed, user testbed.User, args ...string) {
	t.Helper()
	if _, err := bed.Kubectl(user).Run(t.Context(), args...); err != nil {
		t.Errorf("as %s: %v", user, err)
	}
}

// workspaceURL is where a user's own kubeconfig points.
func workspaceURL(t *testing.T, bed *testbed.Bed, user testbed.User) string {
	t.Helper()
	config, err := bed.Config(user)
	if err != nil {
		t.Fatal(err)
	}
	return config.Host
}
