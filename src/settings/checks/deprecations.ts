import type { Row } from '../settings';
import { check } from './check';

const doesNothing = (field: Extract<Row['field'], `${string}PipelineLimit`>) =>
  check([field], ({ settings, nameOf }) =>
    settings[field] > 0 ? `${nameOf(field)} is deprecated and does nothing.` : undefined,
  );

/** What is no longer of use: warned about, never refused. */
export const deprecations = [doesNothing('kvstorePipelineLimit'), doesNothing('kvstorePersecondPipelineLimit')];
