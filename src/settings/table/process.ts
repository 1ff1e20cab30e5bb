import { planned } from './planned';
import { group, setting } from './setting';
import { choice, logFormat } from '../values/choices';
import { workers } from '../values/numbers';

export const processSettings = group({
  title: 'Process and logs',
  note: 'Logs go to standard error.',
  settings: [
    setting({
      field: 'logLevel',
      name: 'LOG_LEVEL',
      // The log has no level beyond debug and fatal; the words of the Go service mean the nearest one.
      type: choice({ fatal: ['panic'], error: [], warning: ['warn'], info: [], debug: ['trace'] }),
      default: 'warning',
      help: 'The least severe lines that are written.',
    }),
    setting({
      field: 'logFormat',
      name: 'LOG_FORMAT',
      type: logFormat,
      default: 'text',
      help: 'Lines of key="value" fields, or one JSON object a line.',
    }),
    setting({
      field: 'workers',
      name: 'WORKERS',
      type: workers,
      default: 1,
      help: 'Processes that share the ports and the work; auto is one for each core.',
      plannedFeature: planned.workers,
    }),
  ],
});
