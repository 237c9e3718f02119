package otel_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/metrics/otel"
)

// A handover is the end of leave in one process and the end of campaign in the next. What happened meanwhile is told, and what has
// failed is an error.
func TestSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(nil)
		tell := tracetest.NewSpanRecorder()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(tell))
		campaign := func(ctx context.Context, id string) (*elect.Term, error) {
			b := c.Client(id)
			t.Cleanup(func() { b.Close() })
			return elect.New(b, "reports", &elect.Options{ID: id, Trace: otel.Spans(provider)}).Campaign(ctx)
		}
		first, err := campaign(t.Context(), "web-1")
		if err != nil {
			t.Fatal(err)
		}
		next := make(chan *elect.Term)
		go func() {
			term, err := campaign(t.Context(), "web-2")
			if err != nil {
				t.Error(err)
			}
			next <- term
		}()
		time.Sleep(time.Minute)
		if err := first.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		second := <-next
		failed := errors.New("it was to lead by now")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, failed)
		defer cancel()
		if _, err := campaign(ctx, "web-3"); !errors.Is(err, failed) {
			t.Fatal(err)
		}
		if err := second.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}

		var got []string
		byToken := make(map[int64][]sdktrace.ReadOnlySpan)
		for _, s := range tell.Ended() {
			got = append(got, s.Name())
			set := attribute.NewSet(s.Attributes()...)
			if election, _ := set.Value("succession.election"); election.AsString() != "reports" {
				t.Errorf("%s is of %v", s.Name(), s.Attributes())
			}
			token, _ := set.Value("succession.token")
			byToken[token.AsInt64()] = append(byToken[token.AsInt64()], s)
		}
		want := []string{"succession.campaign", "succession.leave", "succession.campaign", "succession.campaign", "succession.leave"}
		if !slices.Equal(got, want) && !slices.Equal(got, []string{want[0], want[2], want[1], want[3], want[4]}) { // two processes
			t.Fatalf("the spans are %q, want %q", got, want)
		}
		for token, spans := range byToken {
			if token == 0 { // the campaign that has failed
				if s := spans[0]; s.Status().Code != codes.Error || len(spans) != 1 || len(s.Links()) != 0 {
					t.Errorf("the campaign that has failed has the status %v", s.Status())
				}
				continue
			}
			campaign, leave := spans[0], spans[1]
			if len(spans) != 2 || leave.Links()[0].SpanContext.SpanID() != campaign.SpanContext().SpanID() || leave.Status().Code == codes.Error {
				t.Errorf("of the term with token %d there is %v", token, spans)
			}
		}
		waited := byToken[int64(second.Token())][0]
		if d := waited.EndTime().Sub(waited.StartTime()); d < time.Minute {
			t.Errorf("who has waited a minute is told to have waited %v", d)
		}
		var events []string
		for _, e := range waited.Events() {
			events = append(events, e.Name)
		}
		if !slices.Equal(events, []string{"session opened", "joined", "waiting"}) {
			t.Errorf("what happened meanwhile is %q", events)
		}
		if err := provider.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// A process that is stopped has not failed, whether it leads or waits. Who has lost its session has.
func TestSpansOfRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(nil)
		tell := tracetest.NewSpanRecorder()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(tell))
		run := func(ctx context.Context, id string) *memory.Backend {
			b := c.Client(id)
			t.Cleanup(func() { b.Close() })
			e := elect.New(b, "reports", &elect.Options{ID: id, Trace: otel.Spans(provider)})
			go e.Run(ctx, func(ctx context.Context, _ *elect.Term) error {
				<-ctx.Done()
				return nil
			})
			time.Sleep(time.Second)
			return b
		}
		failed := func() (names []string) {
			for _, s := range tell.Ended() {
				if s.Status().Code == codes.Error {
					names = append(names, s.Name())
				}
			}
			return names
		}
		ctx, stop := context.WithCancel(t.Context())
		run(ctx, "web-1")
		run(ctx, "web-2")
		stop()
		synctest.Wait()
		if ended, names := tell.Ended(), failed(); len(ended) < 3 || names != nil {
			t.Errorf("%d spans have ended, and of processes that were stopped these have failed: %q", len(ended), names)
		}
		run(t.Context(), "web-3").Expire()
		time.Sleep(time.Minute)
		if names := failed(); !slices.Equal(names, []string{"succession.leave"}) {
			t.Errorf("of a process whose session has ended these have failed: %q", names)
		}
	})
}

// A campaign may begin before the last term has left, and events may come that nothing has begun: every span ends, and none ends another.
func TestSpansOutOfOrder(t *testing.T) {
	tell := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(tell))
	says := otel.Spans(provider)
	m := backend.Member{Line: "reports", Key: "7"}
	for _, ev := range []trace.Event{
		{Kind: trace.Ended, Member: m}, {Kind: trace.Left, Member: m}, {Kind: trace.Finished, Member: m}, // of a term that began before
		{Kind: trace.Started}, {Kind: trace.Elected, Member: m}, {Kind: trace.Ended, Member: m},
		{Kind: trace.Started}, {Kind: trace.Left, Member: m}, {Kind: trace.Finished, Member: m}, // the next campaign, while that term leaves
		{Kind: trace.Elected, Member: m, Token: 8}, {Kind: trace.Ended, Member: m}, {Kind: trace.Ended, Member: m}, {Kind: trace.Finished, Member: m},
		{Kind: trace.Started}, {Kind: trace.Started}, {Kind: trace.Finished}, {Kind: trace.Finished}, // two at a time
	} {
		ev.Election = "reports"
		says(ev)
	}
	if last := tell.Started()[3]; last.Name() != "succession.campaign" || !slices.Contains(last.Attributes(), attribute.Int64("succession.token", 8)) {
		t.Errorf("the second campaign is %s with %v", last.Name(), last.Attributes())
	}
	if begun, ended := len(tell.Started()), len(tell.Ended()); begun != ended {
		t.Errorf("%d spans have begun, and %d have ended", begun, ended)
	}
}
