import { join } from 'node:path';
import { NamedPipe } from '../support/processes/named-pipe';
import { WeirProcess } from '../support/processes/weir-process';
import { until } from '../support/waiting/until';
import { Shop } from './shop';

it.each(['pipe', 'socket'])('the service logs how many lines it has dropped when a %s is read again', async (kind) => {
  using pipe = new NamedPipe();
  const outputs = kind === 'pipe' ? { stderr: pipe.writer } : {};
  await using shop = await Shop.start({ env: { LOG_LEVEL: 'debug', DISABLE_STATS: 'true' }, outputs });
  function output() {
    return kind === 'pipe' ? pipe.text : shop.weir.output;
  }
  shop.weir.pauseOutput();
  await shop.dropLines('ratelimit.log.dropped');
  const dropped = (await shop.weir.statistics()).get('ratelimit.log.dropped');
  shop.weir.resumeOutput();
  pipe.read();
  const line = await until('the line to be written', () => {
    return output()
      .split('\n')
      .find((each) => each.includes('log lines were dropped'));
  });
  expect(line).toMatch(new RegExp(`level=warning .* lines=${dropped}$`));
  await shop.drain();
  await until('the last line is read', () => output().includes('drained; the process exits'));
});

it('decisions continue while standard output is not read, and the lines of their log are counted and reported', async () => {
  using pipe = new NamedPipe();
  const env = { DECISION_LOG: 'all', DISABLE_STATS: 'true' };
  await using shop = await Shop.start({ env, outputs: { stdout: pipe.writer } });
  await shop.dropLines('ratelimit.decision_log.dropped');
  await shop.weir.line(/level=warning msg="lines of the decision log are dropped: its output is blocked/);
  pipe.read();
  await shop.weir.line(/level=info msg="lines of the decision log are written again" dropped=\d+/);
  await shop.drain();
  expect(pipe.text.split('\n').filter((line) => line.startsWith('{')).length).toBeGreaterThan(100);
});

describe('an exception that nothing catches', () => {
  const NODE_OPTIONS = `--require ${join(__dirname, '../support/processes/throw-on-signal.cjs')}`;
  const env = { FORCE_START_WITHOUT_INITIAL_CONFIG: 'true', DISABLE_STATS: 'true', NODE_OPTIONS };

  it.each([
    ['text', / level=fatal /],
    ['json', /"level":"fatal"/],
  ])('is logged as %s with its stack and without secrets, and the exit code is 1', async (LOG_FORMAT, level) => {
    await using weir = await WeirProcess.start({ env: { ...env, LOG_FORMAT } });
    weir.signal('SIGWINCH');
    expect(await weir.exited).toBe(1);
    const last = weir.output.split('\n').at(-1);
    expect(last).toMatch(level);
    for (const part of ['internal error; the process exits', 'throw-on-signal.cjs', 'redis://***@host']) {
      expect(last).toContain(part);
    }
    expect(weir.output).not.toContain('hunter2');
  });

  it('ends the process also when standard error is blocked', async () => {
    using pipe = new NamedPipe();
    await using weir = await WeirProcess.start({ env, outputs: { stderr: pipe.writer } });
    pipe.fill();
    weir.signal('SIGWINCH');
    expect(await weir.exited).toBe(1);
  });
});
