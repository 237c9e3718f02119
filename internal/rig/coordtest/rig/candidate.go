package rig

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/conformance"
)

// Of a candidate's process: the URL of its backend, the election, and the candidate's
// ID.
const (
	urlEnv      = "SUCCESSION_CANDIDATE_URL"
	electionEnv = "SUCCESSION_CANDIDATE_ELECTION"
	idEnv       = "SUCCESSION_CANDIDATE_ID"
)

// Process returns a fault of that name: candidates in processes of this test binary,
// whose TestMain calls [Candidate], on backends that are opened by the URL. They end
// with the test binary, also when they are stopped at that moment.
func Process(url string) func(election, id string) *exec.Cmd {
	return func(election, id string) *exec.Cmd {
		self, err := os.Executable()
		cmd := exec.Command(self)
		if err != nil {
			cmd.Err = err // of Start
		}
		cmd.Env = append(os.Environ(), urlEnv+"="+url, electionEnv+"="+election, idEnv+"="+id)
		cmd.Stderr = os.Stderr
		ownGroup(cmd)
		return cmd
	}
}

// Candidate is for the beginning of TestMain. In a process that [Process] has described
// it runs [conformance.Stand] and does not return; in any other it does nothing.
func Candidate() {
	url, ok := os.LookupEnv(urlEnv)
	if !ok {
		return
	}
	if err := stand(context.Background(), url, os.Getenv(electionEnv), os.Getenv(idEnv)); err != nil {
		fmt.Fprintln(os.Stderr, "candidate:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func stand(ctx context.Context, url, election, id string) error {
	b, err := succession.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer b.Close()
	return conformance.Stand(ctx, b, election, id, os.Stdin, os.Stdout)
}
