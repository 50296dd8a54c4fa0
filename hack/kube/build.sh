#!/usr/bin/env bash
# Builds kubectl and kube-apiserver from Go modules alone.
# usage: build.sh SOURCE OUT
#   SOURCE  unused: these modules build where they are
#   OUT     folder that takes the binaries
set -euo pipefail

version=v1.36.3
out=$2
package=k8s.io/component-base/version

cd "$(dirname "${BASH_SOURCE[0]}")"
GOFLAGS='' go build -mod=readonly -buildvcs=false -o "$out/" \
  -ldflags "-X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=36 -X $package.gitTreeState=clean" \
  k8s.io/kubernetes/cmd/kubectl k8s.io/kubernetes/cmd/kube-apiserver
