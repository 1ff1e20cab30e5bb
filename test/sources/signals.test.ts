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

describe('termination signals that are recorded from the start', () => {
  it('are emitted to the later subscriber before further ones, and do not end the process after unsubscribing', async () => {
    await using recorder = new TypeScriptProcess(join(__dirname, 'recorded-signals-process.ts'), []);
    expect(await recorder.line()).toBe('ready');
    recorder.signal('SIGTERM');
    expect(await recorder.line()).toBe('received');
    recorder.say('subscribe');
    expect(await recorder.line()).toBe('SIGTERM');
    recorder.signal('SIGINT');
    expect(await recorder.line()).toBe('SIGINT');
    expect(await recorder.line()).toBe('unsubscribed');
    recorder.signal('SIGTERM');
    expect(await recorder.line()).toBe('received');
    recorder.say('end');
    expect(await recorder.end()).toBe(3);
  });

  it('end the process with 1 when a second one comes before there is a subscriber', async () => {
    await using recorder = new TypeScriptProcess(join(__dirname, 'recorded-signals-process.ts'), []);
    expect(await recorder.line()).toBe('ready');
    recorder.signal('SIGTERM');
    expect(await recorder.line()).toBe('received');
    recorder.signal('SIGINT');
    expect(await recorder.end()).toBe(1);
  });
});
