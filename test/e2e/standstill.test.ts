import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { NamedPipe } from '../support/processes/named-pipe';
import { WeirProcess, type WeirOptions } from '../support/processes/weir-process';
import { workersOf } from '../support/processes/worker-processes';
import { until } from '../support/waiting/until';
import { isRunning, linesWith } from './workers/instance';

const KILLED = 'the event loop has not turned for 1 s; the process is killed';
const ORPHANED = 'the primary is gone, and the event loop does not turn; the worker is killed';

/** A service whose event loop may stand still for a second, and does so for good when it receives SIGWINCH. */
function start({ env, ...options }: WeirOptions = {}): Promise<WeirProcess> {
  const preload = require.resolve('../support/processes/block-on-signal.cjs');
  const rules = join(__dirname, '../../examples');
  const own = { RUNTIME_ROOT: rules, NODE_OPTIONS: `--require=${preload}`, EVENT_LOOP_TIMEOUT: '1s' };
  return WeirProcess.start({ env: { ...own, ...env }, ...options });
}

/** Lets a service stand still until it is killed: others whose loops have stood still before would be over, too. */
async function standStill(): Promise<void> {
  await using weir = await start();
  weir.signal('SIGWINCH');
  await weir.exited;
}

describe('a process whose event loop stands still', () => {
  it('is killed after the time of the setting with one line, and not because it was suspended for longer', async () => {
    await using weir = await start({ env: { LOG_FORMAT: 'json' } });
    weir.signal('SIGSTOP');
    await standStill();
    weir.signal('SIGCONT');
    await standStill();
    expect(weir.isRunning).toBe(true);
    weir.signal('SIGWINCH');
    expect(await weir.exited).toBeNull();
    expect(linesWith(weir, KILLED)).toBe(1);
    expect(JSON.parse(weir.output.split('\n').at(-1)!)).toEqual({
      level: 'fatal',
      '@timestamp': expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      '@message': KILLED,
    });
  });

  it('stays while a profile is taken, and with EVENT_LOOP_TIMEOUT=0', async () => {
    await using profiled = await start();
    await using unwatched = await start({ env: { EVENT_LOOP_TIMEOUT: '0' } });
    const profile = profiled.debug('/debug/pprof/profile?seconds=300', { method: 'POST' });
    await profiled.until('the profile to be recorded', async () => {
      return (await profiled.debug('/debug/pprof/profile?seconds=1', { method: 'POST' })).includes('is being recorded');
    });
    for (const weir of [profiled, unwatched]) weir.signal('SIGWINCH');
    await standStill();
    expect([profiled.isRunning, unwatched.isRunning]).toEqual([true, true]);
    profiled.signal('SIGKILL');
    expect(await profile.catch(() => 'no profile')).toBe('no profile');
  });

  it('is killed as the first process of a container, which no signal of its own ends', async () => {
    await using weir = await start({ isFirst: true });
    const children = readFileSync(`/proc/${weir.pid}/task/${weir.pid}/children`, 'utf8');
    process.kill(Number(children), 'SIGWINCH');
    expect(await weir.exited).toBeNull();
    expect(linesWith(weir, KILLED)).toBe(1);
  });

  it('is killed while standard error accepts nothing', async () => {
    using stderr = new NamedPipe();
    await using weir = await start({ outputs: { stderr: stderr.writer } });
    stderr.fill();
    weir.signal('SIGWINCH');
    expect(await weir.exited).toBeNull();
  });
});

describe('a worker whose event loop stands still', () => {
  it('is killed and replaced', async () => {
    await using weir = await start({ env: { WORKERS: '2' } });
    process.kill(workersOf(weir)[0]!.pid, 'SIGWINCH');
    await weir.line(/level=fatal msg="the event loop has not turned for 1 s; the process is killed" worker=1$/);
    await weir.line(/msg="a worker has ended; its calls have failed, and it is replaced" worker=1 reason="killed by/);
    expect(weir.isRunning).toBe(true);
  });

  it('ends when the primary is gone, also with EVENT_LOOP_TIMEOUT=0', async () => {
    await using weir = await start({ env: { WORKERS: '2', EVENT_LOOP_TIMEOUT: '0' } });
    const workers = workersOf(weir);
    for (const { pid } of workers) process.kill(pid, 'SIGWINCH');
    await weir.until('both to stand still', () => linesWith(weir, 'the event loop is blocked') === 2);
    weir.signal('SIGKILL');
    await until('the workers have ended', () => workers.every(({ pid }) => !isRunning(pid)));
    await weir.exited;
    expect(linesWith(weir, ORPHANED)).toBe(2);
  });
});
