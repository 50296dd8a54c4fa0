#!/usr/bin/env bash
# Generates deep copies and the manifest of the blueprint kind from the types in pkg/apis.
# usage: generate.sh [--verify]
#   --verify  changes nothing, and fails if the files differ from what would be generated
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

types=pkg/apis/krop/v1alpha1
crds=manifests/crd

generate() {
  go tool -modfile=hack/tools/go.mod controller-gen object crd "paths=./$types" \
    "output:object:dir=$1" "output:crd:dir=$2"
}

if [ "${1-}" != --verify ]; then
  generate "$types" "$crds"
  exit
fi

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
generate "$fresh/types" "$fresh/crds"
if ! diff -u "$types/zz_generated.deepcopy.go" "$fresh/types/zz_generated.deepcopy.go" || ! diff -ru "$crds" "$fresh/crds"; then
  echo 'generated files are out of date: make update-generated' >&2
  exit 1
fi
