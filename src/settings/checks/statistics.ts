import { check } from './check';

export const statisticsChecks = [
  check(['disableStats', 'pushstatsHost', 'usePushstats', 'useTaggedstats'], ({ settings, nameOf }) => {
    const { disableStats, pushstatsHost, usePushstats, useTaggedstats } = settings;
    const isUsed = !disableStats && usePushstats && useTaggedstats;
    return isUsed && 'socketPath' in pushstatsHost
      ? `${nameOf('pushstatsHost')} is a socket, whose daemon would receive every statistic twice, without and with tags; ` +
          `enable only one of ${nameOf('usePushstats')} and ${nameOf('useTaggedstats')}.`
      : undefined;
  }),
  check(
    ['decisionLog', 'decisionLogOutput', 'disableStats', 'usePushstats', 'useTaggedstats', 'usePullmetrics'],
    ({ settings, nameOf }) => {
      const { decisionLog, decisionLogOutput, disableStats, usePushstats, useTaggedstats, usePullmetrics } = settings;
      const isUsed = !disableStats && !usePushstats && !useTaggedstats && !usePullmetrics;
      if (!isUsed || decisionLog === 'off' || decisionLogOutput !== 'stdout') return undefined;
      return (
        `${nameOf('decisionLog')}=${decisionLog} would write to standard output, as the statistics do when ` +
        `${nameOf('usePushstats')} is false and no other output is on; set ${nameOf('decisionLogOutput')} to stderr or to a file, ` +
        `or enable another output of the statistics, or set ${nameOf('disableStats')}=true.`
      );
    },
  ),
];
