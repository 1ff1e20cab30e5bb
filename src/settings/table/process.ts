import { group, setting } from './setting';
import { choice, logFormat } from '../values/choices';
import { duration } from '../values/duration';
import { workers } from '../values/numbers';

export const processSettings = group({
  title: 'Process and logs',
  note: 'Logs are written to standard error.',
  settings: [
    setting({
      field: 'logLevel',
      name: 'LOG_LEVEL',
      // trace and panic, which only the Go service has, map to the nearest level.
      type: choice({ fatal: ['panic'], error: [], warning: ['warn'], info: [], debug: ['trace'] }),
      default: 'warning',
      help: 'Minimum level of the log lines that are written; `warning` includes those about start, reloads and stop.',
    }),
    setting({
      field: 'logFormat',
      name: 'LOG_FORMAT',
      type: logFormat,
      default: 'text',
      help: 'key="value" fields, or one JSON object per line.',
    }),
    setting({
      field: 'workers',
      name: 'WORKERS',
      type: workers,
      default: 1,
      help: 'Number of processes that decide behind the same ports; auto: one per CPU core.',
    }),
    setting({
      field: 'shutdownDelay',
      name: 'SHUTDOWN_DELAY',
      type: duration('0 to 1h'),
      default: 0,
      help: 'Time from the first termination signal, when health turns unhealthy, to the drain; calls are served until then.',
    }),
  ],
});
