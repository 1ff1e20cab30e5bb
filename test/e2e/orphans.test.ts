import { join } from 'node:path';
import { TypeScriptProcess } from '../support/processes/typescript-process';
import { until } from '../support/waiting/until';

test('a service that a test has started ends when the process of the test is killed', async () => {
  let pid: number;
  {
    await using starter = new TypeScriptProcess(join(__dirname, '../support/processes/start-weir.ts'), []);
    pid = Number(await starter.line());
    expect(process.kill(pid, 0)).toBe(true);
  }
  await until('the service has ended', () => {
    try {
      process.kill(pid, 0);
      return false;
    } catch {
      return true;
    }
  });
});
