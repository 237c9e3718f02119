package kubernetes

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// kustomize returns what kubectl apply -k DIR would apply.
func kustomize(t *testing.T, dir string) *objects {
	t.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := made.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	o := new(objects)
	o.decode(t, dir, text)
	return o
}

// The kustomization is the manifests, and a base of one's own.
func TestKustomization(t *testing.T) {
	o := kustomize(t, ".")
	want := manifests(t, "deployment.yaml", "disruption.yaml")
	if !reflect.DeepEqual(o, want) {
		t.Errorf("the kustomization makes\n%+v\nwhere the manifests have\n%+v", o, want)
	}
	dir := t.TempDir()
	base := filepath.Join(dir, "base")
	if err := os.CopyFS(base, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "own")
	if err := os.Mkdir(own, 0o755); err != nil {
		t.Fatal(err)
	}
	const overlay = "resources: [../base]\nimages: [{name: registry.example/reports, newName: registry.example.com/reports, newTag: \"2\"}]\n"
	if err := os.WriteFile(filepath.Join(own, "kustomization.yaml"), []byte(overlay), 0o644); err != nil {
		t.Fatal(err)
	}
	o = kustomize(t, own)
	if image := o.deployments[0].Spec.Template.Spec.Containers[0].Image; image != "registry.example.com/reports:2" {
		t.Errorf("with another image, %s is used", image)
	}
	o.secrets = manifests(t, "secret.yaml").secrets
	o.check(t)
}

// With the component the same Deployment needs no coordinator and no Secret.
func TestLeases(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "base"), os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	run, err := os.ReadFile("run.yaml")
	if err != nil {
		t.Fatal(err)
	}
	component := func(resource string) *objects {
		own, err := os.MkdirTemp(dir, "own")
		if err == nil {
			err = os.WriteFile(filepath.Join(own, "run.yaml"), run, 0o644) // files have to be below the kustomization
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(own, "kustomization.yaml"), []byte("resources: ["+resource+"]\ncomponents: [../base/leases]\n"), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		return kustomize(t, own)
	}
	for name, o := range map[string]*objects{
		"service": component("../base"),
		"command": component("run.yaml"),
		"chart":   helm(t, "mails", map[string]any{"leases": true, "secret": "", "url": "kubernetes:///app?ttl=30s"}),
	} {
		t.Run(name, func(t *testing.T) {
			o.check(t)
			if d := o.deployments; len(d) != 1 || mountsSecret(d[0].Spec.Template.Spec) || !strings.HasPrefix(urlOf(t, d[0].Spec.Template.Spec.Containers[0]), "kubernetes:///app?ttl=") {
				t.Errorf("it makes %+v", d)
			}
		})
	}
}

// An account that is there already is that of all Pods, and gets the rights if it is to.
func TestServiceAccount(t *testing.T) {
	const url = "kubernetes:///app?ttl=30s"
	for _, leases := range []bool{false, true} {
		o := helm(t, "mails", map[string]any{"leases": leases, "serviceAccount": "robot", "secret": "", "url": url, "page": map[string]any{"enabled": true, "url": url}})
		if len(o.accounts) != 0 || len(o.roles) != len(o.bindings) || (len(o.bindings) == 1) != leases || leases && o.bindings[0].Subjects[0].Name != "robot" {
			t.Errorf("with leases %v it makes %+v, %+v, %+v", leases, o.accounts, o.roles, o.bindings)
		}
		if len(o.deployments) != 2 {
			t.Errorf("it makes %d Deployments", len(o.deployments))
		}
		for _, d := range o.deployments {
			pod := d.Spec.Template.Spec
			if pod.ServiceAccountName != "robot" {
				t.Errorf("%s has the account %q", d.Name, pod.ServiceAccountName)
			}
			secure(t, pod, pod.Containers[0])
		}
	}
}

// helm returns what helm install RELEASE would apply, with values of one's own.
func helm(t *testing.T, release string, values map[string]any) *objects {
	t.Helper()
	c, err := loader.Load("chart")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	changes, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	if newest := regexp.MustCompile(`(?m)^## (\S+)`).FindSubmatch(changes); newest == nil || string(newest[1]) != c.Metadata.Version {
		t.Errorf("the chart has the version %s, and CHANGELOG.md begins with %s", c.Metadata.Version, newest)
	}
	v, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: release, Namespace: "default", IsInstall: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := engine.Engine{Strict: true} // a value that is not there is an error
	files, err := e.Render(c, v)
	if err != nil {
		t.Fatal(err)
	}
	o := new(objects)
	for name, text := range files {
		if strings.TrimSpace(text) != "" {
			o.decode(t, name, bytes.TrimSpace([]byte(text)))
		}
	}
	return o
}

// The chart makes what the manifests have, so that one is not better than the other.
func TestChart(t *testing.T) {
	if got, want := helm(t, "send-reports", nil), manifests(t, "run.yaml"); !reflect.DeepEqual(got, want) {
		t.Errorf("the chart makes\n%+v\nand run.yaml\n%+v", got.deployments[0], want.deployments[0])
	}
	page := helm(t, "succession", map[string]any{"program": map[string]any{"enabled": false}, "page": map[string]any{"enabled": true}})
	page.secrets = manifests(t, "ui.yaml").secrets
	if want := manifests(t, "ui.yaml"); !reflect.DeepEqual(page, want) {
		t.Errorf("the chart makes\n%+v\nand ui.yaml\n%+v", page.deployments[0], want.deployments[0])
	}
	reports := helm(t, "reports", map[string]any{"podMonitor": map[string]any{"enabled": true}})
	if want := manifests(t, "podmonitor.yaml").monitors; !reflect.DeepEqual(reports.monitors, want) {
		t.Errorf("the chart makes %+v, and podmonitor.yaml %+v", reports.monitors, want)
	}
}

// What somebody sets is there, and is as sound as what the chart has by itself.
func TestValues(t *testing.T) {
	o := helm(t, "mails", map[string]any{
		"program":    map[string]any{"election": "team/mails", "grace": 10, "replicas": 3, "port": 9000, "command": []any{"/bin/send", "-v", "to: all"}},
		"podMonitor": map[string]any{"enabled": true, "labels": map[string]any{"release": "prometheus"}},
		"page":       map[string]any{"enabled": true, "flags": []any{"--allow=resign", "--base-path=/elections"}},
	})
	o.secrets = all(t).secrets
	o.check(t)
	i := slices.IndexFunc(o.deployments, func(d *appsv1.Deployment) bool { return d.Name == "mails" })
	if args := o.deployments[i].Spec.Template.Spec.Containers[0].Args; !slices.Equal(args[5:], []string{"team/mails", "--", "/bin/send", "-v", "to: all"}) {
		t.Errorf("the program is started by %q", args)
	}
	if a := o.deployments[i].Spec.Template.Annotations; len(a) > 0 {
		t.Errorf("a Prometheus that heeds a PodMonitor and %v sees each Pod twice, and so two leaders", a)
	}
	if l := o.monitors[0].Labels; l["release"] != "prometheus" || l["app"] != "mails" {
		t.Errorf("the PodMonitor has the labels %v", l)
	}
	i = slices.IndexFunc(o.deployments, func(d *appsv1.Deployment) bool { return d.Name == "mails-ui" })
	if args := o.deployments[i].Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--base-path=/elections") {
		t.Errorf("the page is started by %q", args)
	}
	o = helm(t, "mails", map[string]any{"url": "etcd://etcd-0.etcd:2379/app?ttl=30s", "secret": ""}) // it names no files
	o.check(t)
	if pod := o.deployments[0].Spec.Template.Spec; mountsSecret(pod) {
		t.Errorf("without a Secret the Pod mounts %+v", pod.Volumes)
	}
}

func mountsSecret(pod corev1.PodSpec) bool {
	return slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Secret != nil })
}

// A program has what it needs besides the coordinator, with a Secret of the coordinator and without.
func TestWhatAProgramNeeds(t *testing.T) {
	program := map[string]any{
		"env": []any{
			map[string]any{"name": "DATABASE_URL", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "db", "key": "url"}}},
			map[string]any{"name": "LEVEL", "value": "3"},
		},
		"volumes":      []any{map[string]any{"name": "settings", "configMap": map[string]any{"name": "mails"}}},
		"volumeMounts": []any{map[string]any{"name": "settings", "mountPath": "/etc/mails"}},
	}
	for name, values := range map[string]map[string]any{
		"secret":    {"program": program},
		"no secret": {"program": program, "secret": "", "url": "etcd://etcd-0.etcd:2379/app?ttl=30s"},
	} {
		t.Run(name, func(t *testing.T) {
			o := helm(t, "mails", values)
			o.secrets = all(t).secrets
			o.check(t)
			pod := o.deployments[0].Spec.Template.Spec
			env := pod.Containers[0].Env
			if len(env) != 4 || env[2].ValueFrom.SecretKeyRef.Key != "url" || env[3].Value != "3" {
				t.Errorf("the program has the environment %+v", env)
			}
			if m := pod.Containers[0].VolumeMounts; m[len(m)-1].MountPath != "/etc/mails" || pod.Volumes[len(m)-1].ConfigMap.Name != "mails" {
				t.Errorf("the program has %+v of %+v", m, pod.Volumes)
			}
		})
	}
}

// Whatever somebody sets is text where text belongs, and says no more than it says: no value of one kind becomes one of another, nor another key.
func TestOddValues(t *testing.T) {
	const host = "a.example.com\n            - --allow=pause # x: \"y\""
	o := helm(t, "123", map[string]any{
		"url": "etcd://h:2379/app?user=\"a\"\n: b", "secret": "true",
		"program":    map[string]any{"election": "007", "replicas": 0, "command": []any{"true", "1", "a\nb: {c}"}, "image": "1.5"},
		"podMonitor": map[string]any{"enabled": true},
		"page":       map[string]any{"enabled": true, "hosts": []any{host}, "secret": "5", "flags": []any{"--allow=resign # no"}},
	})
	i := slices.IndexFunc(o.deployments, func(d *appsv1.Deployment) bool { return d.Name == "123" })
	if i < 0 {
		t.Fatalf("nothing is called 123: %+v", o.deployments)
	}
	d := o.deployments[i].Spec.Template.Spec
	if c := d.Containers[0]; o.deployments[i].Labels["app"] != "123" || c.Name != "123" || !slices.Equal(c.Args[5:], []string{"007", "--", "true", "1", "a\nb: {c}"}) || d.Volumes[0].Secret.SecretName != "true" {
		t.Errorf("the program is %+v", d)
	}
	i = slices.IndexFunc(o.deployments, func(d *appsv1.Deployment) bool { return d.Name == "123-ui" })
	d = o.deployments[i].Spec.Template.Spec
	if args := d.Containers[0].Args; !slices.Contains(args, "--host="+host) || !slices.Contains(args, "--allow=resign # no") || slices.Contains(args, "--allow=pause") || d.Volumes[0].Secret.SecretName != "5" {
		t.Errorf("the page is %q", args)
	}
}

// What would make a Pod that does not start, or one that is killed too early, is refused before anything is applied.
func TestWrongValues(t *testing.T) {
	c, err := loader.Load("chart")
	if err != nil {
		t.Fatal(err)
	}
	for what, values := range map[string]map[string]any{
		"a grace with a unit":      {"program": map[string]any{"grace": "5s"}},
		"no grace":                 {"program": map[string]any{"grace": 0}},
		"half a second":            {"program": map[string]any{"grace": 5.5}},
		"a port as text":           {"program": map[string]any{"port": "http"}},
		"a command in one text":    {"program": map[string]any{"command": "/bin/send -v"}},
		"no command":               {"program": map[string]any{"command": []any{}}},
		"less than no Pods":        {"program": map[string]any{"replicas": -1}},
		"flags in one text":        {"page": map[string]any{"flags": "--allow=resign"}},
		"a flag that is no text":   {"page": map[string]any{"flags": []any{map[string]any{"--allow": "resign"}}}},
		"a name that is not":       {"page": map[string]any{"host": "elections.example.com"}},
		"no URL":                   {"url": ""},
		"no Secret":                {"secret": ""},
		"no Secret, with a role":   {"secret": "", "leases": true},
		"an account as a key":      {"serviceAccount": map[string]any{"name": "robot"}},
		"a label that is no text":  {"podMonitor": map[string]any{"labels": map[string]any{"release": 1}}},
		"a host of a URL in --set": {"url": "etcd://h1:2379", "secret": "", "h2:2379/app?ttl": "30s"}, // url=etcd://h1:2379,h2:2379/app?ttl=30s
	} {
		if _, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: "mails"}, nil); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
	// What a chart gives to those that it depends on.
	values := map[string]any{"enabled": true, "global": map[string]any{"region": "eu"}}
	if _, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: "mails"}, nil); err != nil {
		t.Errorf("as a part of another chart: %v", err)
	}
}
