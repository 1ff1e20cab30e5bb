// The load generator, in a process of its own. It receives requests from the process that forked it, and answers them one by one.
import { protocolOf } from '../scenarios/loads';
import { messagesOf } from '../scenarios/messages';
import { Generator } from './generator';
import type { GeneratorRequest } from './generator-requests';

let generator: Generator | undefined;

async function perform(request: GeneratorRequest): Promise<unknown> {
  if (request.kind === 'open') {
    const { load, targets, connections } = request;
    generator = new Generator({ targets, connections, protocol: protocolOf(load), messages: messagesOf(load) });
    return generator.open();
  }
  if (generator === undefined) throw new Error('the generator is not open');
  return ask(generator, request);
}

async function ask(
  running: Generator,
  request: Exclude<GeneratorRequest, { readonly kind: 'open' }>,
): Promise<unknown> {
  switch (request.kind) {
    case 'closed':
      return running.closed(request.outstanding);
    case 'fill':
      running.closed(request.outstanding, request.calls);
      return running.idle(request.timeout);
    case 'paced':
      return running.paced(request.perSecond);
    case 'answered':
      return running.answered;
    case 'mark':
      return running.mark();
    default:
      return running.stop(request.timeout);
  }
}

process.on('message', (request: GeneratorRequest) => {
  void perform(request).then(
    (answer) => process.send?.({ answer }),
    (error: unknown) => process.send?.({ error: String(error) }),
  );
});
// Also when it was killed.
process.on('disconnect', () => process.exit());
