import { join } from 'node:path';
import { RuleFolder } from '../support/data/rule-folder';
import { NamedPipe } from '../support/processes/named-pipe';
import { WeirProcess } from '../support/processes/weir-process';

const NODE_OPTIONS = `--require ${join(__dirname, '../support/processes/throw-on-signal.cjs')}`;

let env: Readonly<Record<string, string>>;
let rules: RuleFolder;
beforeAll(async () => {
  rules = await RuleFolder.with({ 'shop.yaml': 'domain: shop\n' });
  env = { ...rules.env, NODE_OPTIONS, DISABLE_STATS: 'true' };
});
afterAll(() => rules[Symbol.asyncDispose]());

describe('an exception that nothing catches', () => {
  it.each(['text', 'json'])(
    'is logged as %s with its stack and without secrets, and the exit code is 1',
    async (format) => {
      await using weir = await WeirProcess.start({ env: { ...env, LOG_FORMAT: format } });
      weir.signal('SIGWINCH');
      expect(await weir.exited).toBe(1);
      const last = weir.output.split('\n').at(-1);
      expect(last).toContain('internal error; the process exits');
      expect(last).toMatch(format === 'json' ? /"level":"fatal"/ : / level=fatal /);
      expect(last).toContain('throw-on-signal.cjs');
      expect(last).toContain('redis://***@host');
      expect(weir.output).not.toContain('hunter2');
    },
  );

  it('ends the process also when standard error is blocked', async () => {
    using pipe = new NamedPipe();
    await using weir = await WeirProcess.start({ env, outputs: { stderr: pipe.writer } });
    pipe.fill();
    weir.signal('SIGWINCH');
    expect(await weir.exited).toBe(1);
  });
});
