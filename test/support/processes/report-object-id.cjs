// Makes a process write, on SIGUSR2, the id that V8 keeps for one of its objects to standard error: 0 while it keeps
// none.
const { Session } = require('node:inspector/promises');

process.on('SIGUSR2', async () => {
  const session = new Session();
  session.connect();
  const { result } = await session.post('Runtime.evaluate', { expression: 'globalThis' });
  const { heapSnapshotObjectId } = await session.post('HeapProfiler.getHeapObjectId', { objectId: result.objectId });
  session.disconnect();
  process.stderr.write(`object id: ${heapSnapshotObjectId}\n`);
});
