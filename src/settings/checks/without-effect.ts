import { check } from './check';

/** What is read for the sake of environments that set it, and changes nothing: warned about, never refused. */
export const withoutEffect = [
  check(['kvstorePersecondPipelineWindow', 'kvstorePipelineWindow'], ({ settings, nameOf }) => {
    if (settings.kvstorePersecondPipelineWindow === 0) return undefined;
    const common = nameOf('kvstorePipelineWindow');
    return `${nameOf('kvstorePersecondPipelineWindow')} has no effect: the window of ${common} serves both stores.`;
  }),
];
