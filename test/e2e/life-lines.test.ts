import { VERSION } from '../../src/cli/version';
import { RuleFolder } from '../support/data/rule-folder';
import { freePorts } from '../support/processes/free-ports';
import { isListening } from '../support/processes/is-listening';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { WeirProcess } from '../support/processes/weir-process';

const PLAIN = 'domain: shop\ndescriptors: [{key: user, rate_limit: {unit: minute, requests_per_unit: 5}}]\n';

/** The environment of a service that writes what it writes by default. */
const BY_DEFAULT = { LOG_LEVEL: '', DISABLE_STATS: 'true' };

/** The lines without their time. */
function linesOf({ output }: WeirProcess) {
  return output.split('\n').map((line) => line.replace(/^time="\S+" /, ''));
}

async function stop(weir: WeirProcess) {
  weir.signal('SIGTERM');
  return weir.exited;
}

describe('the service at the default log level', () => {
  it('has a line when it serves, with its version, addresses, store and rules', async () => {
    await using rules = await RuleFolder.with({ 'shop.yaml': PLAIN, 'edge.yaml': PLAIN.replace('shop', 'edge') });
    const [metrics] = await freePorts(1);
    await using weir = await WeirProcess.start({
      env: {
        ...rules.env,
        ...BY_DEFAULT,
        DISABLE_STATS: '',
        USE_PULLMETRICS: 'true',
        PULLMETRICS_ADDR: `127.0.0.1:${metrics}`,
      },
    });
    const { http, grpc, debug } = weir.ports;
    expect(linesOf(weir)).toContain(
      `level=info msg="serving" version=${VERSION} grpc=127.0.0.1:${grpc} http=127.0.0.1:${http} ` +
        `debug=127.0.0.1:${debug} metrics=127.0.0.1:${metrics} store=memory ` +
        `source="files in ${rules.root}/config" domains=2 rules=2`,
    );
  });

  it('names its store by kind and address, without credentials', async () => {
    await using rules = await RuleFolder.with({ 'shop.yaml': PLAIN });
    await using redis = await RedisProcess.start({
      directives: ['--requirepass', 'hunter2-hunter2'],
      control: { password: 'hunter2-hunter2' },
    });
    await using weir = await WeirProcess.start({
      env: {
        ...rules.env,
        ...BY_DEFAULT,
        BACKEND_TYPE: 'kvstore',
        KVSTORE_URL: `redis://:hunter2-hunter2@127.0.0.1:${redis.port}`,
      },
    });
    expect(await weir.line(/msg="serving"/)).toContain(`store="kvstore (main: single 127.0.0.1:${redis.port})"`);
    expect(weir.output).not.toContain('hunter2');
  });

  it('has a line when good rules have replaced others, which says what has changed', async () => {
    await using rules = await RuleFolder.with({ 'shop.yaml': PLAIN });
    await using weir = await WeirProcess.start({ env: { ...rules.env, ...BY_DEFAULT } });
    await rules.write('shop.yaml', PLAIN.replace('[{', '[{key: plan}, {').replace('5', '6'));
    expect(await weir.line(/msg="rules loaded".*changes=/)).toMatch(
      / level=info msg="rules loaded" source="files in \S+" version=\S+ domains=1 rules=2 changes="1 rule added \(shop\.plan\); 1 rule changed \(shop\.user\)"$/,
    );
  });

  it('has a line when rejected rules are valid again, at the level of the rejection', async () => {
    await using rules = await RuleFolder.with({ 'shop.yaml': PLAIN });
    await using weir = await WeirProcess.start({ env: { ...rules.env, ...BY_DEFAULT } });
    await rules.write('shop.yaml', 'domain: [\n');
    await weir.line(/level=error msg="new rules rejected; keeping the active rules/);
    await rules.write('shop.yaml', PLAIN);
    expect(await weir.line(/the rules are valid again/)).toMatch(/level=error msg="the rules are valid again"$/);
  });

  it('has a line when the drain begins, with its signal, and one when it has ended, with duration and exit code', async () => {
    await using rules = await RuleFolder.with({ 'shop.yaml': PLAIN });
    await using weir = await WeirProcess.start({ env: { ...rules.env, ...BY_DEFAULT } });
    expect(await stop(weir)).toBe(0);
    expect(linesOf(weir).slice(-2)).toEqual([
      'level=info msg="draining: no new calls are accepted, those in flight finish" signal=SIGTERM',
      expect.stringMatching(/^level=info msg="drained; the process exits" duration=\d+ms exit_code=0$/),
    ]);
  });
});

it('writes no line in a life without trouble at LOG_LEVEL=error', async () => {
  await using rules = await RuleFolder.with({ 'shop.yaml': PLAIN });
  await using weir = await WeirProcess.start({
    env: { ...rules.env, LOG_LEVEL: 'error', DISABLE_STATS: 'true' },
    awaitServing: false,
  });
  await weir.until('the service to serve', () => isListening(weir.ports.grpc));
  await rules.write('shop.yaml', PLAIN.replace('5', '6'));
  await weir.until('the new limit', async () => (await weir.debug('/rlconfig')).includes('requests_per_unit=6'));
  expect(await stop(weir)).toBe(0);
  expect(weir.output).toBe('');
});
