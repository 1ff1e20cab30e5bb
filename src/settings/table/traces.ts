import { is } from './condition';
import { group, setting } from './setting';
import { boolean, choice } from '../values/choices';
import { ratio } from '../values/numbers';
import { text } from '../values/text';

export const traceSettings = group({
  title: 'Traces (OpenTelemetry)',
  note: 'Spans are exported by OTLP; the standard OTEL_EXPORTER_OTLP_* variables apply as well.',
  requires: [is('TRACING_ENABLED', 'true')],
  settings: [
    setting({
      field: 'tracingEnabled',
      name: 'TRACING_ENABLED',
      type: boolean,
      default: false,
      help: 'Exports spans.',
    }),
    setting({
      field: 'tracingExporterProtocol',
      name: 'TRACING_EXPORTER_PROTOCOL',
      type: choice({ http: [], grpc: [] }),
      default: 'http',
      help: 'Protocol of the OTLP exporter.',
    }),
    setting({
      field: 'tracingServiceName',
      name: 'TRACING_SERVICE_NAME',
      type: text(),
      default: 'RateLimit',
      help: 'Service name in spans.',
    }),
    setting({
      field: 'tracingServiceNamespace',
      name: 'TRACING_SERVICE_NAMESPACE',
      type: text(),
      default: '',
      help: 'Service namespace in spans.',
    }),
    setting({
      field: 'tracingServiceInstanceId',
      name: 'TRACING_SERVICE_INSTANCE_ID',
      type: text(),
      default: undefined,
      defaultText: 'random UUID (version 4)',
      help: 'Service instance id in spans.',
    }),
    setting({
      field: 'tracingSamplingRate',
      name: 'TRACING_SAMPLING_RATE',
      type: ratio({ min: 0, max: 1 }),
      default: 1,
      help: 'Fraction of the traces to sample when the caller has made no sampling decision.',
    }),
  ],
});
