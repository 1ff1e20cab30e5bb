import { readFileSync } from 'node:fs';
import {
  type Observable,
  Subscription,
  asyncScheduler,
  concat,
  defer,
  finalize,
  forkJoin,
  merge,
  of,
  raceWith,
  share,
  timer,
} from 'rxjs';
import type { Listening } from '../http/server/serve';
import { serveMetrics } from '../http/serve-metrics';
import type { Settings } from '../settings/settings';
import { dogstatsdLines } from '../sinks/statistics/lines/dogstatsd-lines';
import { type LineFormat, extraTags } from '../sinks/statistics/lines/line-format';
import { builtInMapping } from '../sinks/statistics/mapping/built-in-mapping';
import { Exposition } from '../sinks/statistics/exposition/exposition';
import { extraLabels } from '../sinks/statistics/exposition/label-text';
import { Mapper } from '../sinks/statistics/mapping/mapping';
import { readMappingFile } from '../sinks/statistics/mapping/mapping-file';
import { jsonLines } from '../sinks/statistics/lines/json-lines';
import type { LineSender } from '../sinks/statistics/senders/line-sender';
import type { Mogrifier } from '../sinks/statistics/lines/mogrify';
import { compileRe2 } from '../sinks/statistics/mapping/re2';
import { SendingOutput } from '../sinks/statistics/senders/sending-output';
import { statsdLines } from '../sinks/statistics/lines/statsd-lines';
import { StreamSender } from '../sinks/statistics/senders/stream-sender';
import { TcpSender, UnixStreamSender } from '../sinks/statistics/senders/connection-sender';
import { UdpSender } from '../sinks/statistics/senders/udp-sender';
import type { Statistics } from '../statistics/statistics';
import { flushing } from '../streams/flushing';
import type { Log } from '../streams/ports/log';
import type { StatisticsOutput } from '../streams/ports/statistics-output';
import { messageOf } from '../text/thrown';

/** Milliseconds for the last flush at the end of the service. */
const LAST_FLUSH = 2_000;

export interface StatisticsOutputs {
  /** Sends what has moved since the last flush, as far as there is time, and ends all outputs. */
  finish(): Observable<unknown>;
}

/**
 * Starts the outputs of statistics that the settings choose.
 *
 * @throws what is wrong with a mogrifier, a mapping file or the address to listen on, naming the setting
 */
export async function startStatisticsOutputs(
  settings: Settings,
  statistics: Statistics,
  log: Log,
): Promise<StatisticsOutputs> {
  if (settings.disableStats) return { finish: () => of(undefined) };
  const outputs = await sendingOutputs(settings, statistics, log);
  const pull = settings.usePullmetrics ? await openPull(settings, statistics, log) : undefined;
  const subscription = new Subscription();
  const flushes = outputs.map((output) => {
    // Shared, so that the last flush can wait for one that is under way.
    const flush$ = defer(() => output.flush()).pipe(share());
    subscription.add(flushing(() => flush$, settings.statsFlushInterval, asyncScheduler).subscribe());
    return { output, flush$ };
  });
  return {
    finish: () => {
      const last$ = flushes.map(({ output, flush$ }) =>
        concat(flush$, flush$).pipe(
          raceWith(timer(LAST_FLUSH)),
          finalize(() => output.close()),
        ),
      );
      const listener$ = pull === undefined ? of(undefined) : defer(() => pull.close());
      return merge(forkJoin(last$), listener$).pipe(finalize(() => subscription.unsubscribe()));
    },
  };
}

async function sendingOutputs(
  settings: Settings,
  statistics: Statistics,
  log: Log,
): Promise<readonly StatisticsOutput[]> {
  const extra = extraTags(settings.extraTags);
  const outputs: StatisticsOutput[] = [];
  function add(format: LineFormat, sender: LineSender) {
    return outputs.push(new SendingOutput({ statistics, format, sender, log }));
  }
  if (settings.usePushstats) {
    add(statsdLines(extra), await senderTo(settings, { framing: 'lines', protocol: settings.pushstatsProtocol }));
  }
  if (settings.useTaggedstats) {
    const format = dogstatsdLines(extra, mogrifiersOf(settings));
    add(format, await senderTo(settings, { framing: 'packets', protocol: 'udp' }));
  }
  if (!settings.usePushstats && !settings.useTaggedstats && !settings.usePullmetrics) {
    add(jsonLines(extra, Date.now), new StreamSender('standard output', process.stdout));
  }
  return outputs;
}

interface Way {
  /** On a stream socket of this machine. */
  readonly framing: 'lines' | 'packets';
  /** To a host. */
  readonly protocol: 'tcp' | 'udp';
}

async function senderTo(settings: Settings, { framing, protocol }: Way): Promise<LineSender> {
  const { pushstatsHost: to, pushstatsPort: port } = settings;
  if ('socketPath' in to) {
    const { socketPath: path, socketType } = to;
    return socketType === 'stream' ? new UnixStreamSender({ path, framing }) : unixDatagramSender(path);
  }
  return protocol === 'tcp' ? new TcpSender({ host: to.host, port }) : new UdpSender({ host: to.host, port });
}

async function unixDatagramSender(path: string): Promise<LineSender> {
  try {
    // Not in Node: a native package brings it, which is not there for every machine.
    const { UnixDatagramSender } = await import('../sinks/statistics/senders/unix-datagram-sender.js');
    return new UnixDatagramSender({ path });
  } catch (error) {
    const [reason] = messageOf(error).split('\n');
    throw new Error(
      `PUSHSTATS_HOST=unix://${path} cannot be used: the package node-unix-socket, which sends datagrams to it, cannot be ` +
        `loaded on this machine (${reason}); install it with npm install --include=optional, or let the daemon listen on ` +
        'a stream socket, unixstream:///path',
      { cause: error },
    );
  }
}

function mogrifiersOf({ mogrifiers }: Settings): readonly Mogrifier[] {
  return mogrifiers.map(({ name, pattern, output, tags }) => {
    try {
      return { pattern: compileRe2(pattern), output, tags };
    } catch (error) {
      throw new Error(`TAGGEDSTATS_MOGRIFIER_${name}_PATTERN is no regular expression: ${messageOf(error)}`, {
        cause: error,
      });
    }
  });
}

async function openPull(settings: Settings, statistics: Statistics, log: Log): Promise<Listening> {
  const labels = extraLabels(settings.extraTags);
  // What nobody scrapes is not loaded. An import of this form names what the file is compiled to, as an ES module would.
  const { processMetrics } = await import('../sinks/statistics/exposition/process-metrics.js');
  const ofProcess = processMetrics(labels);
  const exposition = new Exposition({
    statistics,
    mapper: mapperOf(settings, log),
    labels,
    reserved: ofProcess.names,
    onConflict: (metric) => log.warn('statistics are not exported, as their metric is another one already', { metric }),
    now: () => performance.now(),
  });
  const path = settings.pullmetricsPath;
  const listening = await serveMetrics({
    host: settings.pullmetricsAddr.host,
    port: settings.pullmetricsAddr.port,
    path,
    page: async function* page() {
      yield* exposition.page();
      yield await ofProcess.write();
    },
    log,
  });
  log.info('metrics can be scraped', { port: listening.address.port, path });
  return listening;
}

function mapperOf(settings: Settings, log: Log): Mapper {
  const path = settings.pullmetricsMapperYaml;
  if (path === undefined) return new Mapper(builtInMapping(settings.pullmetricsResponseTimeAsMilliseconds));
  try {
    const file = readMappingFile(readFileSync(path, 'utf8'));
    for (const warning of file.warnings) log.warn(`${path}: ${warning}`);
    return new Mapper(file);
  } catch (error) {
    throw new Error(`PULLMETRICS_MAPPER_YAML=${path} cannot be used: ${messageOf(error)}`, { cause: error });
  }
}
