import { WeirProcess } from './weir-process';

// Starts the service, prints its process ID, and waits to be killed.
void WeirProcess.start({ env: { FORCE_START_WITHOUT_INITIAL_CONFIG: 'true', DISABLE_STATS: 'true' } }).then((weir) => {
  process.stdout.write(`${weir.pid}\n`);
});
