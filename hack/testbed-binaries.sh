#!/usr/bin/env bash
# Puts the binaries that the test bed runs into a folder: kcp, kcp-front-proxy, virtual-workspaces, kubectl
# and kube-apiserver. They are compiled once per content of their module files and kept outside the checkout,
# in ${KROP_CACHE:-${XDG_CACHE_HOME:-~/.cache}/krop}, so that a fresh clone need not compile them again.
# usage: testbed-binaries.sh BIN
set -euo pipefail

hack=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${KROP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/krop}
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)

# key prints a hash of all that decides what the binaries of a component are: its module files, its build
# script, and the compiler with its target.
key() {
  (
    cd "$hack/$1"
    {
      find . -type f -not -path './.build/*' | LC_ALL=C sort | while read -r file; do
        echo "$file"
        git hash-object --no-filters "$file"
      done
      go env GOVERSION GOOS GOARCH GOAMD64 GOARM64 CGO_ENABLED
    } | git hash-object --stdin
  )
}

# provide links the binaries of a component into the folder, and builds them first if they aren't kept yet.
provide() {
  local component=$1 what=$2 kept
  kept=$cache/$component-$(key "$component")
  if [ ! -d "$kept" ]; then
    build "$component" "$what" "$kept"
  fi
  ln -sf "$kept"/* "$bin/"
}

# build compiles into a folder of its own and renames it when all is done: whoever finds the kept folder
# finds it whole, and a build that was interrupted leaves nothing that looks done.
build() {
  local component=$1 what=$2 kept=$3 began=$SECONDS
  out=$(mktemp -d "$kept.XXXXXX")
  trap 'rm -rf "$out"' EXIT
  cat >&2 <<MESSAGE
Building $what
  They are compiled from Go modules, since krop's test bed downloads nothing else. On 2 cores with an empty
  build cache that takes minutes, once: the result is kept in $kept
MESSAGE
  "$hack/$component/build.sh" "$cache/source-$(basename "$kept")" "$out"
  chmod 755 "$out"
  [ -d "$kept" ] || mv "$out" "$kept" # it is there when somebody else was faster
  echo "Built in $((SECONDS - began)) s." >&2
}

bin=${1:?usage: testbed-binaries.sh BIN}
mkdir -p "$bin"
provide kcp 'kcp v0.32.3 (kcp, kcp-front-proxy, virtual-workspaces): about 7 minutes.'
provide kube 'Kubernetes v1.36.3 (kubectl, kube-apiserver): about 4 minutes.'
