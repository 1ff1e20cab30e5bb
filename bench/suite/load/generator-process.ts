// The load generator, in a process of its own. It receives requests from the process that forked it, and answers them
// one by one.
import type { GeneratorRequest } from '../processes/load-generator';
import { protocolOf } from '../scenarios/loads';
import { messagesOf } from '../scenarios/messages';
import { Generator } from './generator';

let generator: Generator | undefined;

async function perform(request: GeneratorRequest): Promise<unknown> {
  if ('open' in request) {
    const { load, ...options } = request.open;
    generator = new Generator({ ...options, protocol: protocolOf(load), messages: messagesOf(load) });
    return generator.open();
  }
  if (generator === undefined) throw new Error('the generator is not open');
  const method: (...args: number[]) => unknown = generator[request.method];
  return method.apply(generator, [...request.args]);
}

process.on('message', (request: GeneratorRequest) => {
  void perform(request).then(
    (answer) => process.send?.({ answer }),
    (error: unknown) => process.send?.({ error: String(error) }),
  );
});
// Also when it was killed.
process.on('disconnect', () => process.exit());
