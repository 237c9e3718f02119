package coordtest_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/lane"
)

// An API server keeps its data when it is restarted, and nothing is left of it, or of the
// etcd below it, once it has been stopped.
func TestKubernetes(t *testing.T) {
	lane.All(t)
	checkLeaks(t)
	k := coordtest.NewKubernetes(t, nil)
	const leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
	if status := kubernetesAsk(t, k, http.MethodPost, leases, `{"metadata":{"name":"x"}}`); status != http.StatusCreated {
		t.Errorf("to create a lease: status %d", status)
	}
	if err := k.Servers()[0].Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status := kubernetesAsk(t, k, http.MethodGet, leases+"/x", ""); status != http.StatusOK {
		t.Errorf("to read the lease after a restart: status %d", status)
	}
	if err := k.Wipe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status := kubernetesAsk(t, k, http.MethodGet, leases+"/x", ""); status != http.StatusNotFound {
		t.Errorf("to read the lease when all was wiped: status %d", status)
	}
	log := k.Servers()[0].LogFile()
	k.Stop()
	if _, err := os.Stat(log); !os.IsNotExist(err) {
		t.Errorf("its folder has not gone: %v", err)
	}
}

// kubernetesAsk returns the status of an answer.
func kubernetesAsk(t *testing.T, k *coordtest.Kubernetes, method, path, body string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, fmt.Sprintf("https://%s%s", k.Addrs()[0], path), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+coordtest.KubernetesToken)
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}
