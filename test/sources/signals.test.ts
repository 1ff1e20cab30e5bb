import { join } from 'node:path';
import { TypeScriptProcess } from '../support/processes/typescript-process';

describe('termination signals', () => {
  it('are told by their names as long as somebody listens, and end the process as ever afterwards', async () => {
    await using listener = new TypeScriptProcess(join(__dirname, 'signals-process.ts'), []);
    expect(await listener.line()).toBe('ready');
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
      listener.signal(signal);
      expect(await listener.line()).toBe(signal);
    }
    expect(await listener.line()).toBe('enough');
    listener.signal('SIGTERM');
    expect(await listener.end()).toBe('SIGTERM');
  });
});
