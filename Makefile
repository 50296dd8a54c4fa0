# krop's commands. They need Go, make, git and a C compiler; everything else comes from Go modules.

.DEFAULT_GOAL := help
.SUFFIXES:

# Where the playground keeps its data, and the first of the ports that it takes.
PLAYGROUND_DIR ?= .playground
PLAYGROUND_PORT ?= 6443

# What make test runs, and how. Several packages boot a kcp, each of which takes all of a small machine for
# half a minute: so one package after another, with time for a slow machine.
PACKAGES ?= ./...
TEST_FLAGS ?= -p 1 -count=1 -timeout 45m

# A test that fails is run once more, by itself, unless many do. What passes only then is listed as flaky at the end:
# several servers share a small machine here, and one hiccup must not hide what everything else has shown.
RERUN ?= --rerun-fails=1 --rerun-fails-max-failures=4 --rerun-fails-run-root-test

TOOL := go tool -modfile=hack/tools/go.mod

##@ Try it

demo: build testbed-binaries ## Start a real kcp and krop, play the story of a provider and its consumers, stop everything
	@go build -o bin/krop-demo ./test/demo
	@exec bin/krop-demo

playground: build testbed-binaries ## Start the same and stay until Ctrl-C; kubeconfigs are in $PLAYGROUND_DIR (.playground)
	@go build -o bin/krop-playground ./cmd/krop-playground
	@exec bin/krop-playground run --end-with-parent --dir "$(PLAYGROUND_DIR)" --port "$(PLAYGROUND_PORT)"

playground-clean: ## Forget the data of the playground
	@go run ./cmd/krop-playground clean --dir "$(PLAYGROUND_DIR)"

##@ Build

build: ## Build bin/krop
	@go build -o bin/krop ./cmd/krop

testbed-binaries: ## Put kcp, kubectl and kube-apiserver into bin/; they are compiled once per machine, which takes minutes
	@hack/testbed-binaries.sh bin

##@ Check

test: build testbed-binaries ## Run every test, against a real kcp and kube-apiserver where one is needed (PACKAGES=./pkg/engine/... runs some)
	@$(TOOL) gotestsum --format standard-quiet $(RERUN) --packages "$(PACKAGES)" -- $(TEST_FLAGS)

bench: build testbed-binaries ## Measure krop beside a hand-written client and print both
	@go build -o bin/krop-bench ./test/bench
	@exec bin/krop-bench

verify: verify-format verify-vet verify-staticcheck verify-rules verify-messages verify-generated ## Check everything that tests don't; make update repairs what can be

update: update-format update-messages update-generated ## Repair what verify complains of, as far as a machine can

verify-format: ## Check that sources are formatted
	@unformatted=$$(gofmt -l cmd hack manifests pkg test); \
	if [ -n "$$unformatted" ]; then echo "not formatted (make update-format):"; echo "$$unformatted"; exit 1; fi

update-format: ## Format sources
	@gofmt -w cmd hack manifests pkg test

verify-vet: ## Run go vet
	@go vet ./...

verify-staticcheck: ## Run staticcheck
	@$(TOOL) staticcheck ./...

verify-rules: ## Check which package may import which, and that every package says what it is for
	@go test -count=1 ./test/architecture

verify-messages: ## Check that docs/errors.md has every message and reason of the sources, and no others
	@go test -count=1 ./test/messages

update-messages: ## Add rows for new messages to docs/errors.md; what they mean and what to do is yours to fill in
	@go test -count=1 ./test/messages -update >/dev/null || echo 'docs/errors.md: fill in the last section (make verify-messages)'

verify-generated: ## Check that generated files are what the types generate
	@hack/generate.sh --verify

update-generated: ## Generate deep copies and the manifest of the blueprint kind from pkg/apis
	@hack/generate.sh

help: ## List these commands
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo playground playground-clean build testbed-binaries test bench verify update \
	verify-format update-format verify-vet verify-staticcheck verify-rules verify-messages update-messages verify-generated update-generated help
