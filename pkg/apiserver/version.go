package apiserver

import (
	"runtime/debug"
	"strings"

	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/util/compatibility"
	basecompatibility "k8s.io/component-base/compatibility"
)

// reportedVersion tells clients which Kubernetes API to expect, that of the library, and which krop it is.
// It comes from the build itself, so that no linker flags are needed.
type reportedVersion struct {
	basecompatibility.EffectiveVersion
}

func newVersion() basecompatibility.EffectiveVersion {
	return reportedVersion{compatibility.DefaultBuildEffectiveVersion()}
}

// Info implements compatibility.EffectiveVersion.
func (v reportedVersion) Info() *apimachineryversion.Info {
	info := v.EffectiveVersion.Info()
	build, ok := debug.ReadBuildInfo()
	if !ok {
		build = &debug.BuildInfo{}
	}
	info.GitVersion = gitVersion(v.BinaryVersion().String(), build)
	info.GitCommit, info.GitTreeState, info.BuildDate = "", "", ""
	for _, setting := range build.Settings {
		switch setting.Key {
		case "vcs.revision":
			info.GitCommit = setting.Value
		case "vcs.time":
			info.BuildDate = setting.Value
		case "vcs.modified":
			info.GitTreeState = map[string]string{"true": "dirty", "false": "clean"}[setting.Value]
		}
	}
	return info
}

// gitVersion is like v1.36.3+krop-v0.1.0, which clients can parse and compare.
func gitVersion(kubernetes string, build *debug.BuildInfo) string {
	version := "v" + kubernetes + ".0"
	for _, library := range build.Deps {
		if library.Path == "k8s.io/apiserver" {
			version = strings.Replace(library.Version, "v0.", "v1.", 1)
		}
	}
	version += "+krop"
	if own := build.Main.Version; own != "" && own != "(devel)" {
		version += "-" + strings.ReplaceAll(own, "+", "-")
	}
	return version
}
