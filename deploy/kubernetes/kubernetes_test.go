// Package kubernetes has manifests to copy; docs/deploying.md says how they are used.
package kubernetes

import (
	"bytes"
	"net"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/succession-dev/succession/backend/coordinator"
	_ "github.com/succession-dev/succession/etcd"
)

// leaving is how long a candidate may take to leave the line; see elect.Options ResignTimeout.
const leaving = 5 * time.Second

// objects are what manifests make.
type objects struct {
	deployments []*appsv1.Deployment
	secrets     []*corev1.Secret
	services    []*corev1.Service
	budgets     []*policyv1.PodDisruptionBudget
	monitors    []*monitoringv1.PodMonitor
	accounts    []*corev1.ServiceAccount
	roles       []*rbacv1.Role
	bindings    []*rbacv1.RoleBinding
}

// decode decodes the documents of a manifest, each into the type that it names, and refuses fields that the type lacks.
func (o *objects) decode(t *testing.T, from string, manifest []byte) {
	t.Helper()
	for _, text := range bytes.Split(manifest, []byte("\n---\n")) {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(text, &kind); err != nil {
			t.Fatalf("%s: %v\n%s", from, err, text)
		}
		var into any
		switch kind.GroupVersionKind() {
		case appsv1.SchemeGroupVersion.WithKind("Deployment"):
			into = added(&o.deployments)
		case corev1.SchemeGroupVersion.WithKind("Secret"):
			into = added(&o.secrets)
		case corev1.SchemeGroupVersion.WithKind("Service"):
			into = added(&o.services)
		case policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"):
			into = added(&o.budgets)
		case monitoringv1.SchemeGroupVersion.WithKind(monitoringv1.PodMonitorsKind):
			into = added(&o.monitors)
		case corev1.SchemeGroupVersion.WithKind("ServiceAccount"):
			into = added(&o.accounts)
		case rbacv1.SchemeGroupVersion.WithKind("Role"):
			into = added(&o.roles)
		case rbacv1.SchemeGroupVersion.WithKind("RoleBinding"):
			into = added(&o.bindings)
		default:
			t.Fatalf("%s: the test knows no %v", from, kind.GroupVersionKind())
		}
		if err := yaml.UnmarshalStrict(text, into); err != nil {
			t.Errorf("%s: %v\n%s", from, err, text)
		}
	}
}

// added adds a new object to all.
func added[T any](all *[]*T) *T {
	*all = append(*all, new(T))
	return (*all)[len(*all)-1]
}

// manifests returns what the files make.
func manifests(t *testing.T, files ...string) *objects {
	t.Helper()
	o := new(objects)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		o.decode(t, file, text)
	}
	return o
}

// all returns what all files make.
func all(t *testing.T) *objects {
	t.Helper()
	files, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return manifests(t, slices.DeleteFunc(files, func(f string) bool { return f == "kustomization.yaml" })...)
}

func TestManifests(t *testing.T) {
	o := all(t)
	if len(o.deployments) != 3 {
		t.Fatalf("%d Deployments, want those of the library, of run and of the page", len(o.deployments))
	}
	o.check(t)
}

// check checks what the objects have to do with each other, and with elections.
func (o *objects) check(t *testing.T) {
	for _, d := range o.deployments {
		t.Run(d.Name, func(t *testing.T) {
			pod := d.Spec.Template.Spec
			c := pod.Containers[0]
			if !matches(d.Spec.Selector, d.Spec.Template.Labels) {
				t.Error("the selector does not match its own Pods")
			}
			for name, p := range map[string]*corev1.Probe{"readiness": c.ReadinessProbe, "liveness": c.LivenessProbe, "startup": c.StartupProbe} {
				if p != nil && p.HTTPGet.Path == "/leader" {
					t.Errorf("the %s probe asks for leadership", name)
				}
				if p != nil && !slices.ContainsFunc(c.Ports, func(port corev1.ContainerPort) bool { return port.Name == p.HTTPGet.Port.StrVal }) {
					t.Errorf("the %s probe asks at port %s, which has no name", name, p.HTTPGet.Port.String())
				}
			}
			listens(t, c)
			secure(t, pod, c)
			o.files(t, pod, c)
			o.rights(t, pod, c)
			if isPage(c) {
				o.page(t, d, c)
				return
			}
			candidate(t, d, c)
			if c.Args[0] == "run" && !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/tmp" && !m.ReadOnly }) {
				t.Error("the program has no folder for temporary files")
			}
			if !slices.ContainsFunc(o.budgets, func(b *policyv1.PodDisruptionBudget) bool {
				return matches(b.Spec.Selector, d.Spec.Template.Labels) && b.Spec.MaxUnavailable.IntValue() == 1
			}) {
				t.Error("no budget keeps a Pod when nodes are drained")
			}
		})
	}
	for _, m := range o.monitors {
		if !slices.ContainsFunc(o.deployments, func(d *appsv1.Deployment) bool {
			return matches(&m.Spec.Selector, d.Spec.Template.Labels) && *m.Spec.PodMetricsEndpoints[0].Port == d.Spec.Template.Spec.Containers[0].Ports[0].Name
		}) {
			t.Errorf("Prometheus finds no port of a Pod by %s", m.Name)
		}
	}
}

// candidate checks the Deployment of a program that stands in line.
func candidate(t *testing.T, d *appsv1.Deployment, c corev1.Container) {
	t.Helper()
	if r := d.Spec.Replicas; r == nil || *r < 2 {
		t.Error("without a second Pod nobody takes over")
	}
	if u := d.Spec.Strategy.RollingUpdate; u == nil || u.MaxUnavailable.IntValue() != 0 || u.MaxSurge.IntValue() < 1 {
		t.Error("a rollout takes a Pod away before the new one is there")
	}
	if c.ReadinessProbe == nil || c.ReadinessProbe.HTTPGet.Path != "/ready" {
		t.Error("a Pod is not asked whether it stands in line, so a rollout replaces healthy ones by ones that cannot connect")
	}
	if c.LivenessProbe.HTTPGet.Path != "/live" {
		t.Errorf("%s is no liveness probe", c.LivenessProbe.HTTPGet.Path)
	}
	if port, annotated := d.Spec.Template.Annotations["prometheus.io/port"]; annotated && port != strconv.Itoa(int(c.Ports[0].ContainerPort)) {
		t.Errorf("Prometheus asks at port %s, and the Pod has %v", port, c.Ports)
	}
	grace := time.Duration(0)
	for _, arg := range c.Args {
		if g, ok := strings.CutPrefix(arg, "--grace="); ok {
			var err error
			if grace, err = time.ParseDuration(g); err != nil {
				t.Fatal(err)
			}
		}
	}
	u, err := coordinator.ParseURL(urlOf(t, c))
	if err != nil {
		t.Fatal(err)
	}
	if ttl := u.Duration("ttl", 10*time.Second); grace > ttl/2 {
		t.Errorf("with a session of %v, the command refuses a grace of %v on every coordinator", ttl, grace)
	}
	if s := d.Spec.Template.Spec.TerminationGracePeriodSeconds; s == nil || time.Duration(*s)*time.Second <= grace+leaving {
		t.Errorf("a Pod is killed before it has left the line, which takes %v", grace+leaving)
	}
}

func isPage(c corev1.Container) bool { return len(c.Args) > 0 && c.Args[0] == "ui" }

// page checks the Deployment of the page: whoever looks needs a token, and no restart is to help against a coordinator that is not
// reached.
func (o *objects) page(t *testing.T, d *appsv1.Deployment, c corev1.Container) {
	t.Helper()
	if !slices.ContainsFunc(c.Args, func(a string) bool { return strings.HasPrefix(a, "--token-file=") }) {
		t.Error("whoever reaches the page needs no token")
	}
	if c.LivenessProbe.HTTPGet.Path != "/healthz" || c.ReadinessProbe.HTTPGet.Path != "/healthz" {
		t.Error("the page is not asked at /healthz, which needs no token")
	}
	if !slices.ContainsFunc(o.services, func(s *corev1.Service) bool {
		return matches(&metav1.LabelSelector{MatchLabels: s.Spec.Selector}, d.Spec.Template.Labels) && s.Spec.Ports[0].TargetPort.StrVal == c.Ports[0].Name
	}) {
		t.Error("no Service leads to the page")
	}
}

// listens checks that the program listens, on all addresses, where the probes ask.
func listens(t *testing.T, c corev1.Container) {
	t.Helper()
	address := ""
	for i, arg := range c.Args {
		if flag, a, ok := strings.Cut(arg, "="); ok && (flag == "--serve" || flag == "--listen") {
			address = a
		} else if arg == "-http" {
			address = c.Args[i+1]
		}
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || host != "" && host != "0.0.0.0" {
		t.Errorf("the program listens at %q (%v); want all addresses of the Pod, with a port", address, err)
	}
	if len(c.Ports) != 1 || strconv.Itoa(int(c.Ports[0].ContainerPort)) != port {
		t.Errorf("the program listens at port %s, and the Pod has the ports %v", port, c.Ports)
	}
}

// secure checks that the Pod has no rights that it does not need.
func secure(t *testing.T, pod corev1.PodSpec, c corev1.Container) {
	t.Helper()
	is := func(b *bool, want bool) bool { return b != nil && *b == want }
	s := c.SecurityContext
	if !is(pod.SecurityContext.RunAsNonRoot, true) || !is(pod.AutomountServiceAccountToken, pod.ServiceAccountName != "") ||
		pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault ||
		!is(s.AllowPrivilegeEscalation, false) || !is(s.ReadOnlyRootFilesystem, true) || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Error("the Pod has rights that it does not need")
	}
	if _, limited := c.Resources.Limits[corev1.ResourceCPU]; limited {
		t.Error("a leader with a limited processor misses its deadline")
	}
}

// rights checks that a Pod has the token of a ServiceAccount if its elections are in Leases, and only then, with the rights that
// docs/kubernetes.md names.
func (o *objects) rights(t *testing.T, pod corev1.PodSpec, c corev1.Container) {
	t.Helper()
	inLeases := strings.HasPrefix(urlOf(t, c), "kubernetes:")
	if inLeases != (pod.ServiceAccountName != "") {
		t.Errorf("the Pod has the ServiceAccount %q, and the coordinator is %s", pod.ServiceAccountName, urlOf(t, c))
	}
	if !inLeases {
		return
	}
	page, err := os.ReadFile("../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	var want rbacv1.Role
	for _, text := range regexp.MustCompile("(?s)```yaml\n(apiVersion: rbac.*?)\n---").FindSubmatch(page)[1:] {
		if err := yaml.UnmarshalStrict(text, &want); err != nil {
			t.Fatal(err)
		}
	}
	if len(o.accounts) != 1 || len(o.roles) != 1 || len(o.bindings) != 1 || len(want.Rules) != 1 || !reflect.DeepEqual(o.roles[0].Rules, want.Rules) {
		t.Fatalf("the rights are %+v; want the rules %+v", o, want.Rules)
	}
	b := o.bindings[0]
	if o.accounts[0].Name != pod.ServiceAccountName || b.RoleRef.Name != o.roles[0].Name || len(b.Subjects) != 1 || b.Subjects[0].Name != pod.ServiceAccountName || b.Subjects[0].Kind != "ServiceAccount" {
		t.Errorf("%+v does not give the role to %s", b, pod.ServiceAccountName)
	}
}

func urlOf(t *testing.T, c corev1.Container) string {
	t.Helper()
	i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "SUCCESSION_URL" })
	if i < 0 {
		t.Fatal("there is no SUCCESSION_URL")
	}
	return c.Env[i].Value
}

// files checks that the URL of the coordinator is one, and that each file that it or a flag names is in the Secret.
func (o *objects) files(t *testing.T, pod corev1.PodSpec, c corev1.Container) {
	t.Helper()
	u, err := coordinator.ParseURL(urlOf(t, c))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := coordinator.DefaultMux.Driver(u); err != nil && u.Scheme != "kubernetes" {
		t.Error(err)
	}
	files := []string{u.Text("password-file", ""), u.Text("ca-file", "")}
	for _, arg := range c.Args {
		if flag, file, ok := strings.Cut(arg, "="); ok && strings.HasSuffix(flag, "-file") {
			files = append(files, file)
		}
	}
	for _, file := range files {
		found := file == ""
		for _, m := range c.VolumeMounts {
			v := pod.Volumes[slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })]
			for _, s := range o.secrets {
				if _, has := s.StringData[path.Base(file)]; has && v.Secret != nil && s.Name == v.Secret.SecretName && m.MountPath == path.Dir(file) {
					found = true
				}
			}
		}
		if !found {
			t.Errorf("%s: no Secret is mounted that has it", file)
		}
	}
}

func matches(s *metav1.LabelSelector, of map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return false
	}
	return !selector.Empty() && selector.Matches(labels.Set(of))
}
