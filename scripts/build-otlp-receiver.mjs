// Builds a receiver of traces from OpenTelemetry's own module, for the test of tracing; see go-binaries.mjs.
// It writes its address, and then each request as a line of JSON.
import { provideFromModule } from "./go-binaries.mjs";

const module = "go.opentelemetry.io/proto/otlp";

process.exitCode = await provideFromModule({
  ...{ name: "otlp-receiver", version: "1.9.0", given: "OTLP_RECEIVER_BIN_DIR", takes: "about a minute" },
  module,
  go: "1.24.0",
  main: `package main

import (
\t"context"
\t"fmt"
\t"net"

\ttrace "${module}/collector/trace/v1"
\t"google.golang.org/grpc"
\t"google.golang.org/protobuf/encoding/protojson"
)

type receiver struct {
\ttrace.UnimplementedTraceServiceServer
}

func (receiver) Export(_ context.Context, request *trace.ExportTraceServiceRequest) (*trace.ExportTraceServiceResponse, error) {
\ttext, err := protojson.MarshalOptions{}.Marshal(request)
\tif err != nil {
\t\treturn nil, err
\t}
\tfmt.Printf("%s\\n", text)
\treturn &trace.ExportTraceServiceResponse{}, nil
}

func main() {
\tlistener, err := net.Listen("tcp", "127.0.0.1:0")
\tif err != nil {
\t\tpanic(err)
\t}
\tfmt.Printf("%s\\n", listener.Addr())
\tserver := grpc.NewServer()
\ttrace.RegisterTraceServiceServer(server, receiver{})
\tpanic(server.Serve(listener))
}
`,
});
