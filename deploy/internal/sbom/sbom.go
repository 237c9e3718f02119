// Package sbom lists what a program links, for those who look for modules with known faults in it.
package sbom

import (
	"fmt"
	"os"
	"os/exec"
)

// Write writes the list of what the Go program links, with Go's own library, to the file, as CycloneDX has it in JSON. It is the same
// each time. The caller must be in module deploy.
func Write(file, program string) error {
	cmd := exec.Command("go", "tool", "cyclonedx-gomod", "bin", "-json", "-std", "-noserial", "-notimestamp", "-output", file, program)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cyclonedx-gomod: %w\n%s", err, out)
	}
	return nil
}
