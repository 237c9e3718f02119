// Package kubernetes has manifests to copy; docs/deploying.md says how they are used.
package kubernetes

import (
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/succession-dev/succession/backend/coordinator"
	_ "github.com/succession-dev/succession/etcd"
)

// leaving is how long a candidate may take to leave the line; see elect.Options ResignTimeout.
const leaving = 5 * time.Second

// decode decodes each manifest into the type that it names, and refuses fields that the type lacks.
func decode(t *testing.T) (deployments []*appsv1.Deployment, secrets []*corev1.Secret, budgets []*policyv1.PodDisruptionBudget) {
	t.Helper()
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no manifests (%v)", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(text, &kind); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		var into any
		switch kind.GroupVersionKind() {
		case appsv1.SchemeGroupVersion.WithKind("Deployment"):
			deployments = append(deployments, new(appsv1.Deployment))
			into = deployments[len(deployments)-1]
		case corev1.SchemeGroupVersion.WithKind("Secret"):
			secrets = append(secrets, new(corev1.Secret))
			into = secrets[len(secrets)-1]
		case policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"):
			budgets = append(budgets, new(policyv1.PodDisruptionBudget))
			into = budgets[len(budgets)-1]
		default:
			t.Fatalf("%s: the test knows no %v", file, kind.GroupVersionKind())
		}
		if err := yaml.UnmarshalStrict(text, into); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	return deployments, secrets, budgets
}

func TestDeployments(t *testing.T) {
	deployments, secrets, _ := decode(t)
	if len(deployments) != 2 {
		t.Fatalf("%d Deployments, want that of the library and that of run", len(deployments))
	}
	for _, d := range deployments {
		t.Run(d.Name, func(t *testing.T) {
			pod := d.Spec.Template.Spec
			c := pod.Containers[0]
			if !matches(d.Spec.Selector, d.Spec.Template.Labels) {
				t.Error("the selector does not match its own Pods")
			}
			if r := d.Spec.Replicas; r == nil || *r < 2 {
				t.Error("without a second Pod nobody takes over")
			}
			if u := d.Spec.Strategy.RollingUpdate; u == nil || u.MaxUnavailable.IntValue() != 0 || u.MaxSurge.IntValue() < 1 {
				t.Error("a rollout takes a Pod away before the new one is there")
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
			if s := pod.TerminationGracePeriodSeconds; s == nil || time.Duration(*s)*time.Second <= grace+leaving {
				t.Errorf("a Pod is killed before it has left the line, which takes %v", grace+leaving)
			}
			if c.LivenessProbe.HTTPGet.Path != "/live" {
				t.Errorf("%s is no liveness probe", c.LivenessProbe.HTTPGet.Path)
			}
			for name, p := range map[string]*corev1.Probe{"readiness": c.ReadinessProbe, "liveness": c.LivenessProbe, "startup": c.StartupProbe} {
				if p != nil && p.HTTPGet.Path == "/leader" {
					t.Errorf("the %s probe asks for leadership", name)
				}
				if p != nil && !slices.ContainsFunc(c.Ports, func(port corev1.ContainerPort) bool { return port.Name == p.HTTPGet.Port.StrVal }) {
					t.Errorf("the %s probe asks at port %s, which has no name", name, p.HTTPGet.Port.String())
				}
			}
			served(t, d.Spec.Template.Annotations, c)
			secure(t, pod, c)
			url(t, pod, c, secrets)
		})
	}
	if c := deployments[0].Spec.Template.Spec.Containers[0]; c.ReadinessProbe.HTTPGet.Path != "/ready" {
		t.Error("a Pod is not asked whether it stands in line, which examples/service answers at /ready")
	}
}

// served checks that the program listens, on all addresses, where the probes and Prometheus ask.
func served(t *testing.T, annotations map[string]string, c corev1.Container) {
	t.Helper()
	address := ""
	for i, arg := range c.Args {
		if a, ok := strings.CutPrefix(arg, "--serve="); ok {
			address = a
		} else if arg == "-http" {
			address = c.Args[i+1]
		}
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || host != "" && host != "0.0.0.0" {
		t.Errorf("the program listens at %q (%v); want all addresses of the Pod, with a port", address, err)
	}
	if len(c.Ports) != 1 || strconv.Itoa(int(c.Ports[0].ContainerPort)) != port || annotations["prometheus.io/port"] != port {
		t.Errorf("the program listens at port %s, the Pod has the ports %v, and Prometheus asks at %s", port, c.Ports, annotations["prometheus.io/port"])
	}
}

// secure checks that the Pod has no rights that it does not need.
func secure(t *testing.T, pod corev1.PodSpec, c corev1.Container) {
	t.Helper()
	is := func(b *bool, want bool) bool { return b != nil && *b == want }
	s := c.SecurityContext
	if !is(pod.SecurityContext.RunAsNonRoot, true) || !is(pod.AutomountServiceAccountToken, false) ||
		pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault ||
		!is(s.AllowPrivilegeEscalation, false) || !is(s.ReadOnlyRootFilesystem, true) || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Error("the Pod has rights that it does not need")
	}
	if _, limited := c.Resources.Limits[corev1.ResourceCPU]; limited {
		t.Error("a leader with a limited processor misses its deadline")
	}
}

// url checks that the URL of the coordinator is one, and that each file that it names is in the Secret.
func url(t *testing.T, pod corev1.PodSpec, c corev1.Container, secrets []*corev1.Secret) {
	t.Helper()
	i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "SUCCESSION_URL" })
	if i < 0 {
		t.Fatal("there is no SUCCESSION_URL")
	}
	u, err := coordinator.ParseURL(c.Env[i].Value)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := coordinator.DefaultMux.Driver(u); err != nil {
		t.Error(err)
	}
	for _, parameter := range []string{"password-file", "ca-file"} {
		file := u.Text(parameter, "")
		found := false
		for _, m := range c.VolumeMounts {
			v := pod.Volumes[slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })]
			for _, s := range secrets {
				if _, has := s.StringData[path.Base(file)]; has && s.Name == v.Secret.SecretName && m.MountPath == path.Dir(file) {
					found = true
				}
			}
		}
		if !found {
			t.Errorf("%s=%s: no Secret is mounted that has it", parameter, file)
		}
	}
}

func TestDisruptionBudget(t *testing.T) {
	deployments, _, budgets := decode(t)
	if len(budgets) != 1 || !matches(budgets[0].Spec.Selector, deployments[0].Spec.Template.Labels) || budgets[0].Spec.MaxUnavailable.IntValue() != 1 {
		t.Error("no budget keeps a Pod of the service when nodes are drained")
	}
}

func matches(s *metav1.LabelSelector, of map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return false
	}
	return !selector.Empty() && selector.Matches(labels.Set(of))
}
