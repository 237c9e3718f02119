package otel_test

import (
	"context"
	"fmt"

	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/metrics"
	"github.com/succession-dev/succession/metrics/otel"
)

// A meter provider reads what a recorder of elections counts.
func ExampleRegister() {
	ctx := context.Background()
	reader := sdk.NewManualReader() // in production an exporter
	m := metrics.New(nil)
	stop, err := otel.Register(m, sdk.NewMeterProvider(sdk.WithReader(reader)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()

	b := memory.New(nil).Client("web-1")
	defer b.Close()
	e := elect.New(b, "reports", &elect.Options{Trace: m.Trace})
	e.Run(ctx, func(context.Context, *elect.Term) error {
		var all metricdata.ResourceMetrics
		if err := reader.Collect(ctx, &all); err != nil {
			return err
		}
		for _, metric := range all.ScopeMetrics[0].Metrics {
			if g, ok := metric.Data.(metricdata.Gauge[float64]); ok && metric.Name == "succession.leader" {
				fmt.Println(metric.Name, g.DataPoints[0].Value)
			}
		}
		return nil
	})
	// Output: succession.leader 1
}
