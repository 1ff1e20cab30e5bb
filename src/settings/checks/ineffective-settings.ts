import { check } from './check';
import type { Row } from '../settings';

function deprecated(field: Extract<Row['field'], `${string}PipelineLimit`>) {
  return check([field], ({ settings, nameOf }) =>
    settings[field] > 0 ? `${nameOf(field)} is deprecated and has no effect; remove it.` : undefined,
  );
}

/** Settings that are accepted for compatibility with existing environments but have no effect; each causes a warning. */
export const ineffectiveSettings = [deprecated('kvstorePipelineLimit'), deprecated('kvstorePersecondPipelineLimit')];
