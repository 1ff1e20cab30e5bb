import { join } from 'node:path';
import { TypeScriptProcess } from '../support/processes/typescript-process';

describe('termination signals', () => {
  it('are emitted by name while there is a subscriber, and end the process after unsubscribing', async () => {
    await using listener = new TypeScriptProcess(join(__dirname, 'signals-process.ts'), []);
    expect(await listener.line()).toBe('ready');
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
      listener.signal(signal);
      expect(await listener.line()).toBe(signal);
    }
    expect(await listener.line()).toBe('unsubscribed');
    listener.signal('SIGTERM');
    expect(await listener.end()).toBe('SIGTERM');
  });
});
