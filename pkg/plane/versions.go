package plane

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// IsGone says whether an answer proves that an object does not exist. That the plane doesn't serve its
// resource proves nothing by itself: the version may have been dropped, discovery may lag, or a claim be missing.
func IsGone(err error) bool { return apierrors.IsNotFound(err) && !IsNotServed(err) }

// Find reads an object in whatever version the plane serves its resource: the one that it was written in may have
// been dropped since. at says which version that was. An error is IsGone if the object does not exist, which
// is also so where the resource is served in no version at all: with a CRD, its objects go. On a
// consumer's plane that can't be told from a missing claim, and the error is IsNotServed.
func Find(ctx context.Context, p Plane, target v1alpha1.Target, object Object) (live *unstructured.Unstructured, at Object, err error) {
	live, err = p.Get(ctx, object)
	if !IsNotServed(err) {
		return live, object, err
	}
	versions, failure := p.Versions(ctx, object.GVR.GroupResource())
	if failure != nil {
		return nil, object, fmt.Errorf("versions of %s: %w", object.GVR.GroupResource(), failure)
	}
	for _, version := range versions {
		at = object
		at.GVR.Version = version
		if live, err = p.Get(ctx, at); !IsNotServed(err) {
			return live, at, err
		}
	}
	if len(versions) == 0 && target != v1alpha1.TargetConsumer {
		err = apierrors.NewNotFound(object.GVR.GroupResource(), object.Name)
	}
	return nil, object, err
}

// Versions implements Plane.
func (s *server) Versions(ctx context.Context, resource schema.GroupResource) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	known, err := s.groupVersions(ctx, resource.Group)
	if err != nil {
		return nil, reach(err)
	}
	var served []string
	for _, version := range known {
		list := &metav1.APIResourceList{}
		path := "/" + groupVersionPath(schema.GroupVersion{Group: resource.Group, Version: version})
		// Any failure, NotFound too, leaves open what the version has: it was listed a moment ago.
		if err := s.discovery.Get().AbsPath(path).Do(ctx).Into(list); err != nil {
			return nil, reach(err)
		}
		for i := range list.APIResources {
			if list.APIResources[i].Name == resource.Resource {
				served = append(served, version)
			}
		}
	}
	return served, nil
}

// groupVersions are the versions of a group, the preferred one first. They are read from the list of all groups:
// unlike a group's own document, it is never answered with NotFound.
func (s *server) groupVersions(ctx context.Context, group string) ([]string, error) {
	if group == "" {
		return []string{coreVersion}, nil
	}
	groups := &metav1.APIGroupList{}
	if err := s.discovery.Get().AbsPath("/apis").Do(ctx).Into(groups); err != nil {
		return nil, err
	}
	var versions []string
	for _, listed := range groups.Groups {
		if listed.Name != group {
			continue
		}
		for _, v := range listed.Versions {
			if v.Version == listed.PreferredVersion.Version {
				versions = append([]string{v.Version}, versions...)
			} else {
				versions = append(versions, v.Version)
			}
		}
	}
	return versions, nil
}

// coreVersion is the only version of the group without a name.
const coreVersion = "v1"
