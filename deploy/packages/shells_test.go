//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/succession-dev/succession/internal/calm"
)

// patience is how long a shell may take to complete a word.
const patience = 2 * time.Minute

// What a shell is started with, so that ^T shows the line that is being typed, and clears it. ROOT is where the
// package is installed.
var shells = []struct {
	name, debian string
	file         string // its own file of settings, in its home
	settings     string
	args         []string
}{
	{"bash", "bash-completion", ".bashrc", `
source /usr/share/bash-completion/bash_completion
PS1='READY$ '
bind -x '"\C-t": printf "\nLINE<%s>\n" "$READLINE_LINE"; READLINE_LINE='
`, []string{"-i"}},
	{"zsh", "zsh", ".zshrc", `
fpath=(ROOT/usr/share/zsh/vendor-completions $fpath)
autoload -Uz compinit; compinit -u -D
PS1='READY$ '
show() { zle -I; print -r -- "LINE<$BUFFER>"; BUFFER= }
zle -N show; bindkey '^T' show
`, []string{"-d", "-i"}},
	{"fish", "fish", ".config/fish/config.fish", `
function fish_prompt; echo 'READY$ '; end
function fish_greeting; end
bind \ct 'echo; echo "LINE<"(commandline)">"; commandline ""; commandline -f repaint'
`, []string{"-i"}},
}

// completion checks what each shell makes of words that were begun.
func completion(t *testing.T, root string) {
	program := filepath.Join(root, "usr/bin/succession")
	url := "local:" + t.TempDir()
	leads(t, program, url, "quarterly-reports")
	for _, sh := range shells {
		t.Run(sh.name, func(t *testing.T) {
			home := t.TempDir()
			file := filepath.Join(home, sh.file)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			// Else fish begins to read all manual pages of the machine.
			if err := os.MkdirAll(filepath.Join(home, ".local/share/fish/generated_completions"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(strings.ReplaceAll(sh.settings, "ROOT", root)), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(sh.name, sh.args...)
			cmd.Dir = home
			cmd.Env = []string{"HOME=" + home, "ZDOTDIR=" + home, "TERM=xterm", "LC_ALL=C.UTF-8", "SUCCESSION_URL=" + url,
				"PATH=" + filepath.Dir(program) + ":" + os.Getenv("PATH"), "XDG_DATA_DIRS=" + filepath.Join(root, "usr/share") + ":/usr/share"}
			terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 400})
			if err != nil {
				t.Fatalf("%v (it is in the package %s of Debian)", err, sh.debian)
			}
			defer func() {
				cmd.Process.Kill()
				cmd.Wait()
				terminal.Close()
			}()
			marks := marksOf(terminal)
			wait := func(prefix string) string {
				t.Helper()
				for timeout := time.After(patience); ; {
					select {
					case mark, ok := <-marks:
						if strings.HasPrefix(mark, prefix) {
							return mark
						}
						if !ok {
							t.Fatalf("%s has ended", sh.name)
						}
					case <-timeout:
						t.Fatalf("%s does not show %s", sh.name, prefix)
					}
				}
			}
			wait("READY$ ")
			watch := calm.Start(t)
			for _, tt := range []struct{ typed, want string }{
				{"lead", "leader"},                                                    // a subcommand
				{"queue ta", "queue take"},                                            // one below another
				{"leader quart", "leader quarterly-reports"},                          // an election
				{"run --wait 1s quart", "run --wait 1s quarterly-reports"},            // ... behind a flag
				{"--url zoo", "--url zookeeper://"},                                   // a coordinator
				{"conformance --faults seve", "conformance --faults sever"},           // a fault
				{"conformance --faults kill,seve", "conformance --faults kill,sever"}, // ... behind another
				{"conformance --rule Fault.seve", "conformance --rule Fault.severed"}, // a rule
				{"run --log js", "run --log json"},                                    // a form
			} {
				const tab, show = "\t", "\x14"
				watch.From(time.Now())
				if _, err := io.WriteString(terminal, "succession "+tt.typed+tab+show); err != nil {
					t.Fatal(err)
				}
				got := strings.TrimSuffix(strings.TrimPrefix(wait("LINE<"), "LINE<"), ">")
				want := "succession " + tt.want
				if sh.name == "bash" { // cobra quotes for it what it would not need to
					want = strings.ReplaceAll(want, ",", `\,`)
				}
				// For the name of an election the command waits a second.
				if strings.TrimRight(got, " ") != want && !watch.NotJudged(time.Second, "%q becomes %q", tt.typed, got) {
					t.Errorf("%q becomes %q, want %q (completion needs the package %s of Debian)", "succession "+tt.typed, got, want, sh.debian)
				}
			}
		})
	}
}

var mark = regexp.MustCompile(`READY\$ |LINE<[^>]*>`)

// marksOf returns the prompts and lines that the terminal shows, and nothing else of it.
func marksOf(terminal io.Reader) <-chan string {
	marks := make(chan string, 100)
	go func() {
		defer close(marks)
		s := bufio.NewScanner(terminal)
		s.Split(func(data []byte, atEOF bool) (int, []byte, error) {
			if at := mark.FindIndex(data); at != nil {
				return at[1], data[at[0]:at[1]], nil
			}
			return 0, nil, nil
		})
		for s.Scan() {
			marks <- s.Text()
		}
	}()
	return marks
}

// leads lets a process lead the election until the test ends.
func leads(t *testing.T, program, url, election string) {
	t.Helper()
	cmd := exec.Command(program, "--url", url, "run", "--log", "json", election, "--", "sleep", "1000")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM) // an interrupt may be ignored, as by what a shell starts in the background
		io.Copy(io.Discard, log)
		cmd.Wait()
	})
	for s := bufio.NewScanner(log); s.Scan(); {
		var e struct{ Event string }
		if json.Unmarshal(s.Bytes(), &e) == nil && e.Event == "started" {
			return
		}
	}
	t.Fatal("succession run has ended")
}
