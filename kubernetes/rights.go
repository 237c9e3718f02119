package kubernetes

import (
	"fmt"
	"strings"

	"github.com/succession-dev/succession/backend/coordinator"
)

// verbs are what a candidate does with Leases; an observer has a session, too.
var verbs = []string{"get", "list", "watch", "create", "patch", "delete"}

// rights returns a Role for kubectl apply. Rights are on all Leases of a namespace: the names of members are random. The namespace is the
// one that Open takes. Where that is not known the text has one that kubectl refuses.
func rights(u *coordinator.URL, _ string) (string, error) {
	o, file, in, err := optionsOf(u)
	if err != nil {
		return "", err
	}
	namespace := o.Namespace
	if namespace == "" {
		if _, namespace, err = load(file, in); err != nil {
			namespace = "NAMESPACE # that of the pods"
		}
	}
	return fmt.Sprintf(`apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: succession
  namespace: %s
rules:
- apiGroups: [%s]
  resources: [%s]
  verbs: [%s]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: succession
  namespace: %[1]s
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: succession
subjects:
- kind: ServiceAccount
  name: default # of the pods
  namespace: %[1]s
`, namespace, apiGroup, resource, strings.Join(verbs, ", ")), nil
}
