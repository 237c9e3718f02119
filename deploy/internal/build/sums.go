package build

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
)

// Sums writes SHA256SUMS, which sha256sum -c reads, of what a folder has to be published.
func Sums(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "succession?*"))
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(text), filepath.Base(f))
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), b.Bytes(), 0o644)
}
