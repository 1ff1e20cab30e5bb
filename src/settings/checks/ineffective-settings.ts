import { check } from './check';
import type { Row } from '../settings';

function deprecated(field: Extract<Row['field'], `${string}PipelineLimit`>) {
  return check([field], ({ settings, nameOf }) =>
    settings[field] > 0 ? `${nameOf(field)} is deprecated and has no effect; remove it.` : undefined,
  );
}

/** Settings that are accepted for compatibility with existing environments but have no effect; each causes a warning. */
export const ineffectiveSettings = [
  deprecated('kvstorePipelineLimit'),
  deprecated('kvstorePersecondPipelineLimit'),
  check(['kvstorePersecondPipelineWindow', 'kvstorePipelineWindow'], ({ settings, nameOf }) => {
    if (settings.kvstorePersecondPipelineWindow === 0) return undefined;
    const common = nameOf('kvstorePipelineWindow');
    const ineffective = nameOf('kvstorePersecondPipelineWindow');
    return `${ineffective} has no effect, because ${common} applies to both stores; remove it.`;
  }),
];
