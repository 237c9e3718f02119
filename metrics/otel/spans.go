package otel

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
)

// Spans returns a func for [elect.Options] Trace that makes spans of what others wait for, with a tracer of p:
//
//	succession.campaign   from the beginning of a campaign until this process leads, or the campaign has failed
//	succession.leave      from the end of a term until the next in line can lead; it is linked to the campaign that led to the term
//
// So a handover is two spans: the end of leave in one process, and the end of campaign in the next, with the attribute
// succession.token of each. There is no span of a term, which may last for months: a span is told when it ends. What has happened
// meanwhile, such as a lost session, is an event of the span. OpenTelemetry has no conventions for elections; the attributes are
// called as those of [Register] are.
//
// Each candidate needs a func of its own, which does not block, and is safe for concurrent use.
func Spans(p oteltrace.TracerProvider) func(trace.Event) {
	s := &spans{tracer: p.Tracer(Scope)}
	return s.trace
}

type spans struct {
	tracer oteltrace.Tracer

	mu              sync.Mutex
	campaign, leave oteltrace.Span // nil if none is under way
	led             oteltrace.Link // to the campaign of the present term
}

// The keys of the attributes.
const (
	electionKey = attribute.Key("succession.election")
	tokenKey    = attribute.Key("succession.token")
)

func (s *spans) trace(ev trace.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch ev.Kind {
	case trace.Started:
		end(&s.campaign, nil) // two at a time, which is one too many for this func
		s.campaign = s.begin("succession.campaign", ev)
	case trace.Elected:
		if s.campaign != nil {
			s.led = oteltrace.Link{SpanContext: s.campaign.SpanContext()}
			s.campaign.SetAttributes(tokenKey.Int64(int64(ev.Token)))
		}
		end(&s.campaign, nil)
	case trace.Ended:
		end(&s.leave, nil)
		s.leave = s.begin("succession.leave", ev, s.led)
		s.leave.SetAttributes(tokenKey.Int64(int64(ev.Token)))
		if errors.Is(ev.Err, elect.ErrLost) {
			s.leave.RecordError(ev.Err)
			s.leave.SetStatus(codes.Error, "leadership was lost")
		}
	case trace.Left:
		end(&s.leave, ev.Err)
	case trace.Finished:
		if ev.Member.Key != "" { // of a term; another campaign may have begun since that ended
			end(&s.leave, nil)
			return
		}
		end(&s.campaign, ev.Err)
	case trace.Heartbeat: // many
	default:
		s.happened(ev)
	}
}

// begin begins a span, which is the root of a trace: nobody has asked for it.
func (s *spans) begin(name string, ev trace.Event, links ...oteltrace.Link) oteltrace.Span {
	_, span := s.tracer.Start(context.Background(), name, oteltrace.WithNewRoot(),
		oteltrace.WithLinks(links...), oteltrace.WithAttributes(electionKey.String(ev.Election)))
	return span
}

// end ends a span, if it is under way. err is why what it shows has ended, or nil.
func end(span *oteltrace.Span, err error) {
	if *span == nil {
		return
	}
	if err != nil && !errors.Is(err, context.Canceled) { // who is stopped has not failed, whatever the cause
		(*span).RecordError(err)
		(*span).SetStatus(codes.Error, err.Error())
	}
	(*span).End()
	*span = nil
}

// happened adds an event to the span that is under way.
func (s *spans) happened(ev trace.Event) {
	span := s.campaign
	if s.leave != nil {
		span = s.leave
	}
	if span == nil {
		return
	}
	var more []attribute.KeyValue
	if ev.Err != nil {
		more = append(more, attribute.String("error.message", ev.Err.Error()))
	}
	span.AddEvent(ev.Kind.String(), oteltrace.WithAttributes(more...))
}
