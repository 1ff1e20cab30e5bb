import { RuleFolder } from '../support/data/rule-folder';
import { SecretMount } from '../support/data/secret-mount';
import { everySecret, settingRows, tracesTo } from '../support/data/secret-settings';
import { Secrets } from '../support/data/secrets';
import { observableOutput } from '../support/processes/observable-output';
import { WeirProcess } from '../support/processes/weir-process';
import { quotingGrpcCollector, quotingStore } from '../support/servers/quoting-peers';

type Environment = Readonly<Record<string, string>>;

const [before, after] = [new Secrets(), new Secrets('renewed ')];
const secretNames = settingRows.flatMap(({ name, secret }) => (secret === undefined ? [] : [name]));

/** The texts of secret settings, as the contents of files. */
function filesOf(environment: Environment): Environment {
  return Object.fromEntries(secretNames.flatMap((name) => (environment[name] ? [[name, environment[name]]] : [])));
}

/** The same settings with every secret in a file of the mount. */
function inFiles(environment: Environment, mount: SecretMount): Environment {
  return Object.fromEntries(
    Object.entries(environment).map(([name, text]) =>
      secretNames.includes(name) ? [`${name}_FILE`, mount.path(name)] : [name, text],
    ),
  );
}

it('the output contains no secret of a file, also after it was replaced, when stores quote what they receive', async () => {
  await using peer = await quotingStore('error');
  await using wild = await quotingStore('garbage');
  await using otlp = await quotingGrpcCollector();
  const addresses = { store: peer.address, perSecond: wild.address, xds: peer.address, otlp: otlp.address };
  const [first, second] = [everySecret(before, addresses), everySecret(after, addresses)];
  using mount = new SecretMount(filesOf(first));
  await using weir = await WeirProcess.start({
    env: {
      ...inFiles(first, mount),
      LOG_LEVEL: 'debug',
      GRPC_VERBOSITY: 'DEBUG',
      GRPC_TRACE: 'all',
      DEBUG: '*',
      KVSTORE_STARTUP_INITIAL_INTERVAL: '50ms',
      KVSTORE_STARTUP_MAX_INTERVAL: '50ms',
    },
    awaitServing: false,
  });
  function isSent(secrets: Secrets): boolean {
    const [main, perSecond] = [peer, wild].map(({ received }) => secrets.shownIn(received.join('\n')));
    return main!.includes('KVSTORE_AUTH') && perSecond!.includes('KVSTORE_PERSECOND_AUTH');
  }
  await weir.until('the first passwords are sent', () => isSent(before));
  mount.replace(filesOf(second));
  await weir.until('the new passwords are sent', () => isSent(after));
  await weir.line(/cannot connect to the counter store/);
  const shown = (await observableOutput(weir)) + (await weir.debug('/api/settings'));
  weir.signal('SIGTERM');
  await weir.exited;
  const output = shown + weir.output;
  expect(output).toContain('"name":"KVSTORE_AUTH_FILE","source":"file"');
  expect(output).toContain('the new value in the file of a secret is used');
  expect([before.shownIn(output), after.shownIn(output)]).toEqual([[], []]);
});

it('the output contains no new header of a file when a collector quotes it', async () => {
  await using otlp = await quotingGrpcCollector();
  const [first, second] = [tracesTo(before, otlp.address), tracesTo(after, otlp.address)];
  await using rules = await RuleFolder.with({
    'shop.yaml': 'domain: shop\ndescriptors: [{ key: key, rate_limit: { unit: day, requests_per_unit: 5 } }]',
  });
  using mount = new SecretMount(filesOf(first));
  await using weir = await WeirProcess.start({
    env: {
      ...rules.env,
      ...inFiles(first, mount),
      TRACING_EXPORTER_PROTOCOL: 'grpc',
      OTEL_EXPORTER_OTLP_TIMEOUT: '20000',
      LOG_LEVEL: 'debug',
    },
  });
  mount.replace(filesOf(second));
  const shown = await observableOutput(weir);
  await weir.line(/cannot export traces.*refused/);
  expect(after.shownIn(otlp.received.join('\n'))).toEqual(
    expect.arrayContaining(['OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS']),
  );
  expect([before, after].flatMap((secrets) => secrets.shownIn(shown + weir.output))).toEqual([]);
});
