//go:build linux

package local_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/local"
)

func benchLine(b *testing.B, n int) (backend.Session, []backend.Member) {
	l, err := local.New(b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	s, err := l.Session(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var line []backend.Member
	for range n {
		m, err := s.Join(b.Context(), "e", "host:8080")
		if err != nil {
			b.Fatal(err)
		}
		line = append(line, m)
	}
	return s, line
}

// BenchmarkHandover reports the median time from Leave until the next one leads, in
// lines that are refilled at the end meanwhile.
func BenchmarkHandover(b *testing.B) {
	for _, n := range []int{5, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, line := benchLine(b, n)
			ctx := b.Context()
			var took []time.Duration
			for b.Loop() {
				first, second := line[0], line[1]
				led := make(chan time.Time)
				go func() {
					defer close(led)
					if err := s.Gone(ctx, first); err != nil {
						b.Error(err)
					}
					if p, err := s.Ahead(ctx, second); err != nil || !p.First {
						b.Error(p, err)
					}
					led <- time.Now()
				}()
				time.Sleep(time.Millisecond) // until it waits
				left := time.Now()
				if err := s.Leave(ctx, first); err != nil {
					b.Fatal(err)
				}
				took = append(took, (<-led).Sub(left))
				m, err := s.Join(ctx, "e", "host:8080")
				if err != nil {
					b.Fatal(err)
				}
				line = append(line[1:], m)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// BenchmarkJoin is the time of joining at the end of a line of 5.
func BenchmarkJoin(b *testing.B) {
	s, _ := benchLine(b, 5)
	for b.Loop() {
		m, err := s.Join(b.Context(), "e", "")
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Leave(b.Context(), m); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAhead is the time of asking who is ahead of the last in line.
func BenchmarkAhead(b *testing.B) {
	for _, n := range []int{5, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, line := benchLine(b, n)
			for b.Loop() {
				if _, err := s.Ahead(b.Context(), line[n-1]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
